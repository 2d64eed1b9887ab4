#!/bin/sh
# `npm test`: the checks, then every test. Whatever happens the last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/.."
if ! { sh scripts/preflight.sh && sh scripts/host-setup.sh && npm run --silent check; }; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
exec vitest run "$@"
