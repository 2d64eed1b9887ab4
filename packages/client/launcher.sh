# Read by the commands in the bin folders (a shell file, to be sourced with $package set to the command's package): runs the package's
# dist/main.js on the pinned Node, or on one that will do, and leaves no wrapper process behind.
name=${0##*/}
node='' dir=$package
while [ -z "$node" ] && [ -n "$dir" ]; do
  if [ -x "$dir/node_modules/.bin/node" ]; then node=$dir/node_modules/.bin/node; fi
  dir=${dir%/*} # not dirname: each start of a program is a millisecond of the command's own start
done
if [ -z "$node" ]; then
  node=$(command -v node) || { echo "$name: [tool_missing] no node found: install Node.js 22.19 or newer" >&2; exit 1; }
  version=$("$node" --version) minor=${version#v*.}
  major=${version#v} major=${major%%.*} minor=${minor%%.*}
  if [ "$major" -lt 22 ] || { [ "$major" -eq 22 ] && [ "$minor" -lt 19 ]; }; then
    echo "$name: [host_unsupported] node $version is too old: $node: install Node.js 22.19 or newer, or run npm install again under this one" >&2
    exit 1
  fi
fi

# A checkout that was never built: build it once. An installed package always has its dist.
if [ ! -f "$package/dist/main.js" ] && [ -f "$package/../../scripts/build.sh" ]; then
  PATH=$(dirname "$node"):$PATH npm --prefix "$package/../.." run --silent build >&2
fi
# The bundle where there is one (scripts/command-bundle.ts): it starts in half the time.
main=$package/dist/command/main.js
[ -f "$main" ] || main=$package/dist/main.js
# A small young generation: a third less memory at 10,000 services, for somewhat more garbage collection under churn.
# expose-gc: what only the start or much work needed is given back when that is over (keep-memory-small.ts).
# Only code that runs very often is compiled to the utmost, and none halfway: compilers are 8 MB of a proxy that idles (docs/adr/0070-memory-goes-back-after-work.md).
exec "$node" --max-semi-space-size=2 --expose-gc --no-maglev --invocation-count-for-turbofan=30000 "$main" "$@"
