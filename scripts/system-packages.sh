#!/usr/bin/env bash
# Makes sure of the two system packages: libnuma1 (without it vLLM's CPU kernels do not load) and chromium (tests of pages).
set -euo pipefail

missing=()
/sbin/ldconfig -p | grep -q 'libnuma\.so\.1' || missing+=(libnuma1)
command -v chromium >/dev/null || missing+=(chromium)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]} …" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    exit 0
fi
echo "error: please install: ${missing[*]}   (Debian, Ubuntu: sudo apt-get install ${missing[*]})" >&2
exit 1
