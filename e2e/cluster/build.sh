#!/bin/bash
# build.sh kubernetes FOLDER VERSION PROGRAM… | tools FOLDER: builds into FOLDER/bin what is not there, from the Go module proxy (pause by the C compiler).
# Kubernetes takes some 50 minutes on two cores, the tools two. Each program is there as a whole or not at all: a build that was stopped goes on.
set -euo pipefail
what=$1 folder=$2
export GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0 GOWORK=off
mkdir -p "$folder/bin"
folder=$(cd "$folder" && pwd) bin=$folder/bin

say() { echo "$(date +%T) $*"; }
# make_program NAME COMMAND…: OUT in the command is the file that it writes
make_program() {
  local name=$1; shift
  [ -x "$bin/$name" ] && return
  say "building $name"
  "${@/#OUT/$bin/.$name}"
  mv "$bin/.$name" "$bin/$name"
}

# The module's archive lacks the staging modules: they come by their own names, at v0.<minor>.<patch>.
kubernetes_sources() {
  [ -d "$folder/src" ] && return
  say "fetching the sources of Kubernetes $1"
  local at
  at=$(cd "$(mktemp -d)" && go mod init get 2>/dev/null && go mod download -json "k8s.io/kubernetes@v$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  rm -rf "$folder/.src"
  cp -r "$at" "$folder/.src"
  chmod -R u+w "$folder/.src"
  rm -rf "$folder/.src/vendor" "$folder"/.src/go.work*
  sed -i -E "s#=> ./staging/src/k8s.io/([a-z0-9-]+)\$#=> k8s.io/\\1 v0.${1#1.}#" "$folder/.src/go.mod"
  mv "$folder/.src" "$folder/src"
}

kubernetes() {
  local version=$1 minor program flags
  shift
  minor=$(echo "$version" | cut -d. -f2)
  flags="-s -w -X k8s.io/component-base/version.gitVersion=v$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
  kubernetes_sources "$version"
  cd "$folder/src"
  for program; do
    case $program in
    e2e.test) make_program e2e.test go test -c -vet=off -o OUT ./test/e2e ;;
    ginkgo) make_program ginkgo go build -trimpath -o OUT github.com/onsi/ginkgo/v2/ginkgo ;;
    agnhost | regression-*) make_program "$program" go build -trimpath -o OUT "./test/images/$program" ;;
    *) make_program "$program" go build -trimpath -ldflags "$flags" -o OUT "./cmd/$program" ;;
    esac
  done
}

# module NAME MODULE@VERSION, and its main.go on stdin
module() {
  mkdir -p "$folder/build/$1"
  cd "$folder/build/$1"
  cat >main.go
  [ -x "$bin/$1" ] && return
  printf 'module throwaway/%s\ngo 1.25\n' "$1" >go.mod
  go mod edit -require "$2"
  make_program "$1" go build -trimpath -ldflags "-s -w" -o OUT .
}

tools() {
  module etcd go.etcd.io/etcd/server/v3@v3.6.8 <<'E'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
E
  module coredns github.com/coredns/coredns@v1.12.4 <<'E'
package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func init() { dnsserver.Directives = []string{"errors", "health", "ready", "kubernetes"} }

func main() { coremain.Run() }
E
  mkdir -p "$folder/build/pause"
  cd "$folder/build/pause"
  cat >pause.c <<'E'
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void down(int signal) { (void)signal; exit(0); }
static void reap(int signal) { (void)signal; while (waitpid(-1, NULL, WNOHANG) > 0); }
int main(void) { signal(SIGINT, down); signal(SIGTERM, down); signal(SIGCHLD, reap); for (;;) pause(); }
E
  make_program pause gcc -static -O2 -o OUT pause.c
}

case $what in
kubernetes) shift 2; kubernetes "$@" ;;
tools) tools ;;
*) echo "build.sh: not $what, but kubernetes or tools" >&2; exit 2 ;;
esac
