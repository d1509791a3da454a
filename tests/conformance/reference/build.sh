#!/usr/bin/env bash
# Builds the program that decides scenarios with Karpenter's own code (main.go here) into the cache outside the tree.
# The last line printed is the program.
set -euo pipefail
cd "$(dirname "$0")"
into=${XDG_CACHE_HOME:-$HOME/.cache}/kerf/reference
mkdir -p "$into"
export GOFLAGS=-mod=readonly CGO_ENABLED=0
go build -trimpath -ldflags '-s -w' -o "$into/decide-scenarios" .
printf '%s\n' "$into/decide-scenarios"
