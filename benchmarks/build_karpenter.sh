#!/usr/bin/env bash
# Builds Karpenter's controller for KWOK and the benchmark of its scheduler, of the version given (v1.14.0), from its
# published module into the cache outside the tree. The last line printed is the folder.
set -euo pipefail
version=${1:?which version of Karpenter: v1.14.0, say}
module=sigs.k8s.io/karpenter
into=${XDG_CACHE_HOME:-$HOME/.cache}/kerf/reference/$version
mkdir -p "$into"
export GOFLAGS= CGO_ENABLED=0

GOBIN=$into go install -trimpath -ldflags '-s -w' "$module/kwok@$version"
mv "$into/kwok" "$into/karpenter-kwok"
sources=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
cd "$sources"
go test -tags=test_performance -trimpath -c -o "$into/scheduling.test" ./pkg/controllers/provisioning/scheduling
printf '%s\n' "$into"
