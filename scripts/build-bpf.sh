#!/bin/sh
# Compiles the BPF programs of packages: packages/NAME/src/DIR/x.bpf.c becomes packages/NAME/dist/DIR/x.bpf.o, which is shipped; installing needs no
# compiler. The objects hold BTF, so libbpf fits them to the kernel they are loaded into; they are the same for every little-endian machine.
# Arguments: folders of packages; none: all. Only what is older than its source, than a header beside it or than this script is compiled.
# Without a compiler: says the command and exits 0, as the rest works without; `needs("bpf")` of a test and who loads an object say so too.
# With --required before the folders it fails then: a package is packed with its objects or not at all.
set -eu
cd "$(dirname "$0")/.."
missing=0
[ "${1:-}" != --required ] || { missing=1 && shift; }
[ $# -gt 0 ] || set -- packages/*

# The kernel's headers of Debian and its like lie in a folder of the machine.
machine="/usr/include/$(uname -m)-linux-gnu"
flags="-O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -fdebug-prefix-map=$PWD=."
[ ! -d "$machine" ] || flags="$flags -I$machine"

has_compiler() {
  command -v clang >/dev/null 2>&1 && command -v llvm-strip >/dev/null 2>&1 && [ -e /usr/include/bpf/bpf_helpers.h ]
}

is_fresh() {
  [ -e "$2" ] && [ -z "$(find "$1" "$(dirname "$1")"/*.h scripts/build-bpf.sh -newer "$2" 2>/dev/null)" ]
}

for package; do
  [ -d "$package/src" ] || continue
  # No name in a package has a blank.
  for source in $(find "$package/src" -name '*.bpf.c'); do
    object="$package/dist/${source#"$package/src/"}"
    object="${object%.c}.o"
    is_fresh "$source" "$object" && continue
    if ! has_compiler; then
      echo "turnout: BPF programs are not built; run: apt-get install -y --no-install-recommends clang llvm libbpf-dev, then npm run build" >&2
      exit "$missing"
    fi
    mkdir -p "$(dirname "$object")"
    # Two builds at once each move a whole object into place.
    # shellcheck disable=SC2086 # the list of flags is meant to split
    clang $flags -c "$source" -o "$object.$$"
    # DWARF goes, BTF stays.
    llvm-strip -g "$object.$$"
    mv "$object.$$" "$object"
  done
done
