#!/usr/bin/env bash
# Builds what a Kubernetes control plane consists of from its published Go modules, into a cache outside the tree:
# etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kwok. Takes about ten minutes on two cores the first
# time and a second when nothing has changed. The last line printed is the folder: what KUBEBUILDER_ASSETS should name.
#
#   KERF_CONTROLPLANE  the folder (default: ${XDG_CACHE_HOME:-~/.cache}/kerf/controlplane)
#   GO                 the go command (1.26 or newer)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

kwok_version=v0.8.0
into=${KERF_CONTROLPLANE:-${XDG_CACHE_HOME:-$HOME/.cache}/kerf/controlplane}
go=${GO:-go}

fail() { printf 'controlplane: %s\n' "$*" >&2; exit 1; }
say() { printf 'controlplane: %s\n' "$*" >&2; }

command -v "$go" >/dev/null || fail "no Go found: install Go 1.26 or newer, or name it with GO=/path/to/go; or set KUBEBUILDER_ASSETS to a folder that has the binaries"
version=$("$go" env GOVERSION)
minor=${version#go1.}; minor=${minor%%[!0-9]*}
[ -n "$minor" ] && [ "$minor" -ge 26 ] || fail "$version is too old: Go 1.26 or newer is needed"

mkdir -p "$into"
exec 9>"$into/.lock"
flock -n 9 || { say "another build is at work, waiting for it"; flock 9; }

# make NAME KEY COMMAND…: runs COMMAND with a file name to make, unless NAME was made with the same KEY already.
total=5; count=0
make_binary() {
  local name=$1 key=$2 started=$SECONDS; shift 2
  count=$((count + 1))
  key=$(printf '%s\n%s\n' "$version" "$key" | sha256sum | cut -d' ' -f1)
  if [ -x "$into/$name" ] && [ "$(cat "$into/.$name.key" 2>/dev/null)" = "$key" ]; then return; fi
  say "$count/$total: building $name"
  if ! "$@" "$into/.$name.new"; then
    rm -f "$into/.$name.new"
    fail "$name could not be built (see above); the Go module proxy must be reachable (go env GOPROXY)"
  fi
  mv "$into/.$name.new" "$into/$name"
  printf '%s\n' "$key" >"$into/.$name.key"
  say "$count/$total: $name is built, $((SECONDS - started)) s"
}

kubernetes_version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$here/kubernetes/go.mod")
flags="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes_version"
flags="$flags -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$kubernetes_version")"
flags="$flags -X k8s.io/component-base/version.gitTreeState=clean"

in_module() { (cd "$here/$1" && GOFLAGS=-mod=readonly CGO_ENABLED=0 "$go" build -trimpath -ldflags "$2" -o "$4" "$3"); }
sources() { cat "$here/$1/go.mod" "$here/$1/go.sum" "$here/$1"/${2:-.}/*.go; }
install_kwok() {
  local bin; bin=$(mktemp -d)
  GOFLAGS= CGO_ENABLED=0 GOBIN=$bin "$go" install -trimpath -ldflags "-s -w" "sigs.k8s.io/kwok/cmd/kwok@$kwok_version" || { rm -rf "$bin"; return 1; }
  mv "$bin/kwok" "$1"; rm -rf "$bin"
}

make_binary etcd "$(sources etcd)" in_module etcd "-s -w" .
make_binary kwok "$kwok_version" install_kwok
for name in kube-apiserver kube-scheduler kube-controller-manager; do
  make_binary "$name" "$(sources kubernetes "$name")$flags" in_module kubernetes "$flags" "./$name"
done
printf '%s\n' "$into"
