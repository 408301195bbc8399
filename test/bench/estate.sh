#!/usr/bin/env bash
# Measures plan and apply on an estate of 15,000 objects, and on a tenth of it. Everything is made for
# the run and removed after it.
set -euo pipefail
unset QOD_SERVER QOD_TOKEN
cd "$(dirname "$0")/../.."
root=$(mktemp -d /tmp/qod-estate.XXXXXX)
chmod 0711 "$root"
trap 'rm -rf "$root"' EXIT
go run ./test/bench/estate -qod "$QOD" -extensions "$EXTENSIONS" -root "$root"
