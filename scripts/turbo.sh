#!/bin/sh
# turbo without telemetry and without asking the network for newer versions.
export TURBO_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1 TURBO_NO_UPDATE_NOTIFIER=1
exec turbo "$@"
