#!/bin/sh
# Builds every package (tsc -b needs no particular Node: the compiler is a native binary).
set -e
cd "$(dirname "$0")/.."
node_modules/.bin/tsc -b "$@"
