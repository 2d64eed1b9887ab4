#!/bin/sh
# `npm test` (main): the checks, then the tests of the person who changes code. `npm run test:rest`: the others, without the checks.
# `npm run test:full`: all, and all shares whole. Whatever happens the last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/.."
export TURNOUT_TESTS="$1"
shift
check() {
  [ "$TURNOUT_TESTS" = rest ] || npm run --silent check
}
if ! { sh scripts/preflight.sh && sh scripts/host-setup.sh && check; }; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
exec vitest run "$@"
