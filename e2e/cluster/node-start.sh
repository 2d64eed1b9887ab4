#!/bin/sh
# node-start.sh FOLDER: goes into the node's cgroups (FOLDER/cgroups: "controller folder" a line), and becomes node-init.sh in namespaces of the node.
set -eu
while read -r _ folder; do echo $$ >"$folder/cgroup.procs"; done <"$1/cgroups"
exec unshare --mount --pid --fork --uts --ipc --cgroup --kill-child "${0%/*}/node-init.sh" "$1"
