#!/usr/bin/env bash
# Runs the quickstart: up plans, applies, serves, loads TPC-H and asks Q1; down ends what up started;
# purge removes its data too. QOD is the binary, EXTENSIONS the directory of DuckDB's extensions.
set -euo pipefail
cd "$(dirname "$0")"
: "${QOD:?the qod binary}"
unset QOD_SERVER QOD_TOKEN # this is about this host, whatever server the shell is for

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# Passwords are made once, for this machine only.
passwords() {
	mkdir -p -m 0700 .secrets
	for user in loader analyst; do
		[ -s ".secrets/$user" ] || (umask 077; head -c 18 /dev/urandom | base64 | tr '+/' '-_' >".secrets/$user")
	done
	QOD_VAR_loader_password=$(cat .secrets/loader)
	QOD_VAR_analyst_password=$(cat .secrets/analyst)
	export QOD_VAR_loader_password QOD_VAR_analyst_password
}

up() {
	passwords
	"$QOD" init --extensions-from "${EXTENSIONS:?the directory of extensions}"
	say '$ qod plan'
	"$QOD" plan
	say '$ qod apply --auto-approve'
	"$QOD" apply --auto-approve
	if ! "$QOD" status --serving >/dev/null 2>&1; then
		say '$ qod serve &'
		"$QOD" serve --detach
	fi
	say '$ qod load tpch --sf 0.1 acme/tpch'
	"$QOD" load tpch --sf 0.1 acme/tpch
	say "\$ qod sql --user analyst@acme/bi \"\$(cat q1.sql)\"    # through Arrow Flight SQL"
	"$QOD" sql --user analyst@acme/bi --password-file .secrets/analyst "$(cat q1.sql)"
	say 'It goes on running. From here:'
	cat <<-EOT
		  $QOD -C $(pwd) status
		  $QOD -C $(pwd) sql --user analyst@acme/bi --password-file $(pwd)/.secrets/analyst 'SELECT count(*) FROM orders'
		  edit $(pwd)/main.qod.hcl, then see what would change:  make quickstart
		  make stop     ends it; make quickstart starts it again
		  make purge    ends it and removes its data
	EOT
}

case "${1:-}" in
up) up ;;
down) "$QOD" down ;;
purge) "$QOD" down --purge && rm -rf .secrets ;;
*) echo "usage: $0 up|down|purge" >&2; exit 2 ;;
esac
