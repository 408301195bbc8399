#!/usr/bin/env bash
# Measures the way through the edge against a direct connection to the node, and users under permissions
# and policies against an administrator, in one run and in turns.
# Everything is made for the run and removed after it.
set -euo pipefail
unset QOD_SERVER QOD_TOKEN
cd "$(dirname "$0")/../.."
root=$(mktemp -d /tmp/qod-bench.XXXXXX)
chmod 0711 "$root"
mkdir "$root/work" && cp test/bench/bench.qod.hcl test/testdata/policies/policies.qod.hcl "$root/work/"
export QOD_STATE_DIR=$root/state QOD_RUN_DIR=$root/run QOD_FLIGHT_LISTEN=127.0.0.1:31438 QOD_HTTP_LISTEN=127.0.0.1:0
export QOD_VAR_password=bench-$RANDOM$RANDOM QOD_DRAIN_TIMEOUT_SEC=5
qod() { "$QOD" -C "$root/work" "$@"; }
trap 'qod down --purge >/dev/null; rm -rf "$root"' EXIT
qod init --extensions-from "$EXTENSIONS" >/dev/null
qod apply --auto-approve >/dev/null
qod serve --detach >/dev/null
go run -tags duckdb_arrow ./test/bench -qod "$QOD" -extensions "$EXTENSIONS" -work "$root/work"
