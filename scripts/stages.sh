#!/usr/bin/env bash
# Runs make targets one after the other, stops at the first that fails, and says how long each took.
# usage: scripts/stages.sh lint unit …
set -uo pipefail
cd "$(dirname "$0")/.."

summary=""
for stage in "$@"; do
    printf '\n=== %s\n' "$stage"
    started=$SECONDS
    "${MAKE:-make}" --no-print-directory "$stage"
    status=$?
    [ $status = 0 ] && verdict=passed || verdict=FAILED
    summary+=$(printf '%-14s %-7s %5d s' "$stage" "$verdict" $((SECONDS - started)))$'\n'
    [ $status = 0 ] || break
done
printf '\n=== stages\n%sin all %23d s\n' "$summary" $SECONDS
exit $status
