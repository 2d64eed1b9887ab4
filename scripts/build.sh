#!/bin/sh
# Builds every package (tsc -b needs no particular Node: the compiler is a native binary).
set -e
cd "$(dirname "$0")/.."
# A package that came after npm ci is linked, as npm ci would do.
for package in packages/*/; do
  link=node_modules/@turnout/$(basename "$package")
  [ -e "$link" ] || ln -s "../../$package" "$link"
done
# First what the tests of every package import (@turnout/house/needs), whether or not they name it as a reference.
node_modules/.bin/tsc -b scripts
node_modules/.bin/tsc -b "$@"
node scripts/dist/command-bundle.js
sh scripts/build-bpf.sh
