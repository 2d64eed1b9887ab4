#!/bin/bash
# image-roots.sh FOLDER KUBERNETES TOOLS: the file trees of images that a cluster needs and no registry gives here, one folder each in FOLDER: programs
# from KUBERNETES/bin and TOOLS/bin, and this machine's own tools with their libraries.
set -euo pipefail
folder=$1 kubernetes=$2 tools=$3
PATH=$PATH:/usr/sbin:/sbin
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

# with_libraries ROOT FILE…: files of this machine, and the libraries that they load
with_libraries() {
  local root=$1 file library; shift
  for file; do
    { ldd "$file" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | while read -r library; do
      [ -e "$root$library" ] || install -D "$library" "$root$library"
    done
  done
}

# A root with a shell, and with what tests run by kubectl exec.
root_with_tools() {
  local root=$1 applet tool path file
  mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc,tmp,var/run,root,proc,sys,dev,uploads,run}
  chmod 1777 "$root/tmp"
  install "$(readlink -f "$(command -v busybox)")" "$root/bin/busybox"
  with_libraries "$root" "$root/bin/busybox"
  for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
  for tool in bash dash curl wget dig nslookup ping ip ss nc.openbsd conntrack nft xtables-legacy-multi xtables-nft-multi ipset; do
    path=$(readlink -f "$(command -v $tool)") || continue
    rm -f "$root/bin/$tool"
    install "$path" "$root/bin/$tool"
    with_libraries "$root" "$path"
  done
  for tool in iptables ip6tables; do
    for file in $tool $tool-save $tool-restore; do ln -sf xtables-nft-multi "$root/bin/$file"; done
    for file in "$tool-legacy" "$tool-legacy-save" "$tool-legacy-restore"; do ln -sf xtables-legacy-multi "$root/bin/$file"; done
    for file in "$tool-nft" "$tool-nft-save" "$tool-nft-restore"; do ln -sf xtables-nft-multi "$root/bin/$file"; done
  done
  # iptables loads its matches and targets by name, and names are looked up by more libraries.
  for file in /usr/lib/*/xtables/*.so /lib/*/libnss_{dns,files}.so.2 /lib/*/libresolv.so.2; do
    [ ! -e "$file" ] || install -D "$file" "$root$file"
    with_libraries "$root" "$file"
  done
  ln -sf nc.openbsd "$root/bin/nc"
  # busybox's own shell takes its own nc before any other.
  ln -sf dash "$root/bin/sh"
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\n' >"$root/etc/group"
  printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
}

install -D "$tools/bin/pause" pause/pause
install -D "$tools/bin/coredns" coredns/coredns
mkdir -p coredns/tmp
install -D "$kubernetes/bin/regression-issue-74839" regression-issue-74839/regression-issue-74839
root_with_tools busybox
cp -a busybox distroless-iptables
cp -a busybox kube-proxy
install "$kubernetes/bin/kube-proxy" kube-proxy/bin/kube-proxy
cp -a busybox agnhost
install "$kubernetes/bin/agnhost" agnhost/agnhost
ln -s agnhost agnhost/agnhost-2
cp "$kubernetes"/src/test/images/agnhost/porter/localhost.{crt,key} agnhost/
