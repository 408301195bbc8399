#!/usr/bin/env bash
# Measures Terraform with a thousand users of qod against Terraform with as much of nothing, and against qod
# itself, in one run and in turns. Everything is made for the run and removed after it.
set -euo pipefail
unset QOD_SERVER QOD_TOKEN
cd "$(dirname "$0")/../.."
if ! command -v terraform >/dev/null; then
	echo "terraform is not installed: its applies are not measured"
	exit 0
fi
root=$(mktemp -d /tmp/qod-terraform.XXXXXX)
chmod 0711 "$root"
mkdir "$root/work"
export QOD_STATE_DIR=$root/state QOD_RUN_DIR=$root/run QOD_FLIGHT_LISTEN=127.0.0.1:0 QOD_HTTP_LISTEN=127.0.0.1:31439
export QOD_ADMIN_PASSWORD=bench-$RANDOM$RANDOM
qod() { "$QOD" -C "$root/work" "$@"; }
trap 'qod down --purge >/dev/null; rm -rf "$root"' EXIT
CGO_ENABLED=0 go build -trimpath -o "$root/provider/terraform-provider-qod" ./provider/terraform-provider-qod
qod init --extensions-from "$EXTENSIONS" >/dev/null
qod serve --detach >/dev/null
qod token create admin >"$root/token" 2>"$root/log" || { cat "$root/log" >&2; exit 1; }
# Both ask the server by REST.
QOD_SERVER=http://$QOD_HTTP_LISTEN QOD_TOKEN=$(<"$root/token") go run ./test/bench/terraform -qod "$QOD" -root "$root" "$@"
