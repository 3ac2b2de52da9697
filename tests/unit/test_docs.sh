#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the documents show and point to is there.
status=0
result() { # NAME STATUS WHY
	if [ "$2" = 0 ]; then
		echo "ok - docs: $1"
	else
		echo "not ok - docs: $1: $3"
		status=1
	fi
}

differs=$(awk '/^```$/ { shown = 0 } shown; /^```c$/ { shown = 1 }' docs/quickstart.md |
	diff - examples/quickstart.c | head -1)
[ -z "$differs" ]
result "the quick start shows the program that is built" $? "$differs"

dangling=()
for document in README.md docs/*.md; do
	while read -r target; do
		[ -e "$(dirname "$document")/${target%%#*}" ] || dangling+=("$document: $target")
	done < <(grep -oP '\]\(\K[^)]+' "$document" | grep -v '^https\?:')
done
[ ${#dangling[@]} = 0 ]
result "links lead to files" $? "${dangling[*]}"

unknown=()
while read -r name; do
	[[ $name == *_ ]] || grep -qw "$name" lib/kvpool.h || unknown+=("$name")
done < <(grep -ohE '\bkvp_[a-z_]+' README.md docs/*.md | sort -u)
[ ${#unknown[@]} = 0 ]
result "functions that documents name are in the header" $? "${unknown[*]}"
exit $status
