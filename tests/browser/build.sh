#!/bin/sh
# Fetches axe-core, which the browser tests check accessibility with, into a cache outside the checkout:
#
#   ${SEALTRACE_SERVICES_CACHE:-$HOME/.cache/sealtrace-services}
#
# Needs npm, which takes the package from wherever this machine is set up to; package-lock.json says which
# bytes it has to be. The browser itself is Debian's: apt-get install chromium chromium-driver
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${SEALTRACE_SERVICES_CACHE:-$HOME/.cache/sealtrace-services}
digest=$(sha256sum "$here/package-lock.json" | cut -c1-12)
axe=$cache/axe-core-$digest

mkdir -p "$cache"
if [ ! -e "$axe/axe.min.js" ]; then
    work=$(mktemp -d "$cache/axe.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cp "$here/package.json" "$here/package-lock.json" "$work"
    (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    mv "$work/node_modules/axe-core" "$axe"
fi

ls -l "$axe/axe.min.js"
