#!/usr/bin/env bash
# Runs every fuzz target of the tree, two at a time, and fails when one does: for $1 those that read what people
# write or that look for leaks, and for $2 those of small parts, which have seen it all sooner. What a failing
# target writes below testdata/fuzz stays, to be looked at; all else of fuzzing is in Go's cache.
set -euo pipefail
cd "$(dirname "$0")/.."
export GO=${GO:-go} TAGS=${TAGS:-duckdb_arrow} FUZZTIME=${1:-60s} PARTTIME=${2:-15s}
export PARTS='^(FuzzAddress|FuzzTokens|FuzzRedact|FuzzOpen|FuzzRefused|FuzzExport)$'

one() {
	local out time=$FUZZTIME
	[[ $2 =~ $PARTS ]] && time=$PARTTIME
	out=$("$GO" test -tags "$TAGS" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 20x -parallel 1 "./$1" 2>&1) &&
		echo "$1 $2: $(grep -c '^fuzz: elapsed' <<<"$out") reports, $(tail -n 1 <<<"$out")" && return
	echo "$1 $2 FAILED"
	tail -n 60 <<<"$out"
	return 255 # xargs starts no more
}
export -f one

targets=$(grep -rlE '^func Fuzz' --include='*_test.go' cmd engine runtime schema test | xargs -n 1 dirname | sort -u | while read -r dir; do
	list=$("$GO" test -tags "$TAGS" -list '^Fuzz' "./$dir")
	grep '^Fuzz' <<<"$list" | sed "s|^|$dir |"
done)
[ -n "$targets" ] || { echo "no fuzz target was found"; exit 1; }
xargs -P 2 -L 1 bash -c 'one "$0" "$1"' <<<"$targets"
