#!/bin/sh
# Installs Node for Windows, and koffi's build for it, beside this script: silent and fast where they are there as the lockfile says.
# npm has to be told of the other system, so they can't be ordinary dependencies.
set -eu
cd "$(dirname "$0")"
is_done() { cmp -s package-lock.json node_modules/installed-lock.json; }
! is_done || exit 0
fresh=$(mktemp -d ./fresh.XXXXXX)
trap 'rm -rf "$fresh"' EXIT
cp package.json package-lock.json "$fresh"
(cd "$fresh" && npm ci --ignore-scripts --os=win32 --cpu=x64 --no-audit --no-fund --loglevel=error >&2)
cp package-lock.json "$fresh/node_modules/installed-lock.json"
# Another process may have been faster.
! is_done || exit 0
rm -rf node_modules
mv "$fresh/node_modules" node_modules
