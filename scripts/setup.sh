#!/usr/bin/env bash
# Makes .venv with everything that a run, the tests and the docs need, from the locks. Does nothing when nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."

locks=(requirements/cpu.txt requirements/server.txt requirements/operator.txt requirements/dev.txt)
python=.venv/bin/python
uv=.venv/bin/uv

python311() {
    local candidate
    for candidate in "${PYTHON:-python3.11}" python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "error: Python 3.11 is needed (the locks are made for it); install it, or name it: make setup PYTHON=/path" >&2
    return 1
}

use_index_of_pip() {  # uv does not read pip's settings; where pip has an index of its own, uv takes it over
    local index
    index=${PIP_INDEX_URL:-$("$1" -m pip config get global.index-url 2>/dev/null || true)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
}

packages() {  # ours: the plugins, each a small package of its own, and the project
    local manifest
    for manifest in plugins/*/pyproject.toml; do
        [ ! -e "$manifest" ] || printf '%s\n' --editable "./$(dirname "$manifest")"
    done
    printf '%s\n' --editable .
}

wanted() {  # what the environment is made from, as one line
    sha256sum "${locks[@]}" requirements/build.txt requirements/uv.txt pyproject.toml plugins/*/pyproject.toml \
        scripts/setup.sh 2>/dev/null | sha256sum | cut -d' ' -f1
}

scripts/system-packages.sh

stamp=.venv/setup-done
if [ "$(cat "$stamp" 2>/dev/null)" = "$(wanted)" ]; then
    exit 0
fi

base=$(python311)
use_index_of_pip "$base"
[ -x "$python" ] || "$base" -m venv --without-pip .venv
"$base" -m pip --python "$python" install --quiet --require-hashes --requirement requirements/uv.txt
echo "installing the locked packages into .venv (minutes the first time) …" >&2
# Compiled here, once: a run starts some eight processes, and each spends 7 s on its imports instead of 21 s.
"$uv" pip install --python "$python" --require-hashes --no-deps --build-constraints requirements/build.txt \
    --compile-bytecode "${locks[@]/#/--requirement=}"
mapfile -t ours < <(packages)
"$uv" pip install --python "$python" --no-deps --build-constraints requirements/build.txt "${ours[@]}"
wanted > "$stamp"
