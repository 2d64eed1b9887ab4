#!/bin/bash
# node-init.sh FOLDER: process 1 of a node: mounts what a machine has of its own, then containerd and kubelet. Everything it mounts goes with its namespaces.
# FOLDER holds what stage.ts wrote: hosts, resolv.conf, containerd.toml, kubelet.yaml, kubelet.conf, cni.conflist, images; and gets what the node keeps (disk).
# From the environment: NODE, ADDRESSES (of the kubelet), LOGS, and the programs by PATH.
set -euo pipefail
folder=$1
hostname "$NODE"
mount --make-rprivate /
# Nobody else's namespaces are to live on because this node sees them.
for name in /run/netns/*; do umount -l "$name" 2>/dev/null || true; done
umount -l /run/netns 2>/dev/null || true

mount -t proc proc /proc
umount -l /sys 2>/dev/null || true
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf
# The roots of these are the node's own cgroups.
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
while read -r controller _; do
  mkdir "/sys/fs/cgroup/$controller"
  case $controller in systemd) options=none,name=systemd ;; *) options=$controller ;; esac
  mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$controller"
done <"$folder/cgroups"
mkdir /sys/fs/cgroup/unified
mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified

for path in /var/lib/kubelet /var/lib/containerd /var/lib/cni /etc/cni /opt/cni /var/log/pods /var/log/containers; do
  mkdir -p "$folder/disk$path" "$path"
  mount --bind "$folder/disk$path" "$path"
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/lock /run/containerd /opt/cni/bin /etc/cni/net.d
mount --bind /usr/lib/cni /opt/cni/bin
cp "$folder/cni.conflist" /etc/cni/net.d/10-turnout.conflist
for name in hosts resolv.conf; do mount --bind "$folder/$name" "/etc/$name"; done

# Kernel parameters of the whole machine that the kubelet sets: it sees them set, and the machine stays as it is.
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=$folder/sysctl/${pair%%=*}
  mkdir -p "$(dirname "$file")"
  echo "${pair#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${pair%%=*}"
done
mount --make-rshared /

containerd -c "$folder/containerd.toml" >>"$LOGS/$NODE-containerd.log" 2>&1 &
for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.2; done
for image in "$folder"/images/*.tar; do ctr -n k8s.io images import "$image"; done >>"$LOGS/$NODE-images.log"
while :; do
  kubelet --config "$folder/kubelet.yaml" --kubeconfig "$folder/kubelet.conf" --hostname-override "$NODE" --node-ip "$ADDRESSES" \
    --v "${KUBELET_V:-1}" >>"$LOGS/$NODE-kubelet.log" 2>&1 || true
  sleep 2
done &
# Orphans come to process 1, which has to wait for their ends.
while :; do wait -n 2>/dev/null || true; sleep 1; done
