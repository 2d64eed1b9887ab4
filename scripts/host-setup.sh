#!/bin/sh
# Installs the host tools that tests and demo need and this machine lacks. Nothing to do: silent and fast.
# Not root, or not Debian: prints the command and exits 0; whatever can't run without the tool says so itself.
# Arguments replace the table; that is for its test and the demo. An entry is tool:package or /a/file:package, or tool:package:machine where Debian builds the package for one machine alone.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
[ $# -gt 0 ] || set -- nft:nftables ip:iproute2 conntrack:conntrack unshare:util-linux jq:jq iptables:iptables sysctl:procps \
  ipvsadm:ipvsadm ipset:ipset modprobe:kmod linux.uml:user-mode-linux:x86_64 \
  clang:clang llvm-strip:llvm /usr/include/bpf/bpf_helpers.h:libbpf-dev \
  /usr/bin/chromium-headless-shell:chromium-headless-shell \
  /usr/lib/wine/wine64:wine64:x86_64 x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64:x86_64

packages=""
for entry; do
  case $entry in
    /*) [ ! -e "${entry%%:*}" ] || continue ;;
    *) ! command -v "${entry%%:*}" >/dev/null 2>&1 || continue ;;
  esac
  package=${entry#*:}
  machine=${package#*:}
  package=${package%%:*}
  [ "$machine" = "$package" ] || [ "$machine" = "$(uname -m)" ] || continue
  packages="$packages $package"
done
[ -n "$packages" ] || exit 0

install="apt-get install -y --no-install-recommends$packages"
if ! command -v apt-get >/dev/null 2>&1; then
  echo "turnout: this host lacks:$packages (the names of the Debian packages); install them for the parts that need them" >&2
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "turnout: this host lacks:$packages; run: sudo apt-get update && sudo $install" >&2
  exit 0
fi

echo "turnout: installing$packages with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A fresh machine may still be running its own first apt-get: wait for its lock. An update may fail half
# (one source out of reach) and the install still work, so only the install decides.
apt-get -qq -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 || true
install_now() { apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" >>"$log" 2>&1; }
# shellcheck disable=SC2086 # the list of packages is meant to split
install_now $packages && exit 0
# A package that this release lacks would keep away all others.
failed=""
for package in $packages; do
  install_now "$package" || failed="$failed $package"
done
[ -n "$failed" ] || exit 0
tail -n 5 "$log" >&2
echo "turnout: that did not work; run: apt-get update && apt-get install -y --no-install-recommends$failed" >&2
