#!/usr/bin/env bash
# Writes every lock in requirements/ anew from pyproject.toml and the *.in files.
# Versions stay as they are unless pyproject.toml asks for others; `scripts/lock.sh --upgrade` moves all that may move.
set -euo pipefail
cd "$(dirname "$0")/.."

extras=(train cpu server operator dev)
uv=$(PATH="$PWD/.venv/bin:$PATH" command -v uv) || { echo "error: uv is missing; run: make setup" >&2; exit 1; }

compile() {
    "$uv" pip compile --quiet --python-version 3.11 --python-platform x86_64-unknown-linux-gnu \
        --no-header --no-emit-index-url --no-emit-find-links "$@"
}

# One resolution over all extras settles every version. A lock is then a part of it, so no two locks can differ.
compile --override requirements/overrides.txt --excludes requirements/excludes.txt --annotation-style line \
    "${extras[@]/#/--extra=}" "$@" pyproject.toml --output-file requirements/all.txt

for extra in "${extras[@]}"; do
    rm -f "requirements/$extra.txt"
    compile --override requirements/overrides.txt --excludes requirements/excludes.txt --constraints requirements/all.txt \
        --no-annotate --generate-hashes --extra "$extra" pyproject.toml --output-file "requirements/$extra.txt"
done

for tool in build uv; do
    compile --no-annotate --generate-hashes "$@" "requirements/$tool.in" --output-file "requirements/$tool.txt"
done
