#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The command line of kvpoolctl as far as it goes without the module: exit
# codes, and on which stream what is said. KVPOOLCTL names the program.
: "${KVPOOLCTL:=./kvpoolctl}"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

complain() {
	echo "not ok - kvpoolctl: $*"
	sed 's/^/  stderr: /' "$dir/err"
	failed=1
}

# check CODE TEXT ARGUMENT...: the exit code, and a text that stderr holds, or
# stdout when the code is 0. The other stream must be empty.
check() {
	code=$1
	text=$2
	shift 2
	"$KVPOOLCTL" "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	[ "$got" -eq "$code" ] || complain "$* exits $got, not $code"
	if [ "$code" -eq 0 ]; then
		said=out silent=err
	else
		said=err silent=out
	fi
	grep -qF -- "$text" "$dir/$said" || complain "$*: std$said lacks '$text'"
	[ -s "$dir/$silent" ] && complain "$*: std$silent is not empty"
}

check 0 'usage: kvpoolctl' --help
check 0 'usage: kvpoolctl' -h
check 0 'kvpoolctl ' --version
for command in list show stats resolve monitor journal create set claim destroy recover reserve; do
	check 0 "usage: kvpoolctl $command" "$command" --help
	check 0 "usage: kvpoolctl $command" --json "$command" -h
	check 2 "kvpoolctl: $command: unknown or ambiguous option '--nothing'" "$command" --nothing
	check 2 "kvpoolctl: $command: unknown option '-z'" "$command" -z
	check 2 "option '--json=1' takes no value" "$command" --json=1
done

check 2 'which command?'
check 2 "no command is called 'nothing'" nothing
check 2 "option '--nothing' is not taken before the command" --nothing

check 2 'give both' reserve --node 1
check 2 'give both' reserve --size 1G
check 2 '--uid needs --quota' reserve --uid 0
check 2 '--quota default needs --uid' reserve --quota default
check 2 'is neither first nor only' reserve --policy never
check 2 "'x' is too much" reserve x
check 2 "'x' is too much" list x
check 2 "option '--rank' needs a value" list --rank
check 2 '--rank -1: not a number' list --rank -1
check 2 '--state zombie: a state is' list --state zombie
for command in show claim destroy; do
	check 2 'which pool?' $command
	check 2 'one pool at a time' $command a b
	check 2 "pool 'a:b': not a pool" $command a:b
	check 2 "pool 'id:0': not an id" $command id:0
	check 2 "pool 'id:1.x': not an identity" $command id:1.x
done

check 2 '--domain is missing' create --size 2M --persistent
check 2 '--size is missing' create --domain d --persistent
# A pool that ends with the command is refused, and both ways out are named.
check 2 '--persistent' create --domain d --size 2M
check 2 '--hold' create --domain d --size 2M
check 2 '--strict says how binding --node is' create --domain d --size 2M --persistent --strict
check 2 '--size 0: a size of 0 bytes' create --domain d --size 0 --persistent
check 2 '--size 2X: not a size' create --domain d --size 2X --persistent
check 2 '--mode 0750: only read and write' create --domain d --size 2M --hold --mode 0750
check 2 '--uid 4294967295: no such user' create --domain d --size 2M --hold --uid 4294967295
check 2 'nothing to change' set pool
check 2 '--lifetime forever: a lifetime is' set --lifetime forever pool
check 2 '--count 0: no event' monitor --count 0

check 2 'give one span, or --pid with a range' resolve
check 2 'is not a span' resolve nothing
check 2 '--pid 0: no process has it' resolve --pid 0 0x1000 1
check 2 'which range?' resolve --pid $$
check 2 'the length is 0' resolve --pid $$ 0x1000 0
check 2 'wraps around' resolve --pid $$ 0xffffffffffffffff 2
check 2 'END lies before START' resolve --pid $$ 2000-1000
check 2 'END is START' resolve --pid $$ 1000-1000

check 2 '--dir here: not an absolute path' recover --dir here
check 2 "'x' is too much" recover x
check 2 '--store-config and --store-name follow their --store' recover --store-config x --store y
check 2 '--time-limit 1.5: ' recover --time-limit 1.5
check 2 'do what? Give show FILE' journal
check 2 'do what? Give show FILE' journal hide x
check 2 'show takes one file' journal show
check 2 'show takes one file' journal show a b
check 1 "can't find /nonexistent" journal show /nonexistent
mkdir "$dir/empty"
check 0 '[]' journal show --json "$dir/empty"
: >"$dir/none.journal"
check 0 'torn: the file is empty' journal show "$dir/none.journal"
check 0 '"condition":"torn"' journal show --json "$dir/none.journal"
# It is explained on stdout, and a failure on stderr.
echo 'no journal, by far' >"$dir/empty/other.journal"
"$KVPOOLCTL" journal show "$dir/empty" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || complain 'a foreign file is no failure'
grep -q 'foreign: does not begin as a journal' "$dir/out" || complain 'a foreign file is not explained'
grep -q 'other.journal is foreign' "$dir/err" || complain 'a foreign file is not told'
cp "$dir/none.journal" "$dir/empty/"
"$KVPOOLCTL" journal show --json "$dir/empty" >"$dir/out" 2>"$dir/err"
grep -q '^\[.*none.journal.*"condition":"torn".*},{.*other.journal.*"condition":"foreign".*]$' "$dir/out" ||
	complain 'the journals of a directory are no array'

# Names and words of others neither move the cursor nor make lines of their own.
forged=$(printf '\033[2J\nkvpoolctl: all is well')
echo 'no journal, by far' >"$dir/$forged.journal"
check 1 '/?[2J?kvpoolctl: all is well' journal show "/$forged"
check 2 "'?[2J?kvpoolctl: all is well'" "$forged"
check 2 "'?[2J?kvpoolctl: all is well'" list "$forged"
check 2 "option '--?[2J?kvpoolctl: all is well'" list "--$forged"
check 2 '--dir ?[2J?kvpoolctl: all is well: not an' recover --dir "$forged"
"$KVPOOLCTL" journal show "$dir/$forged.journal" >"$dir/out" 2>"$dir/err"
grep -qF '?[2J?kvpoolctl: all is well.journal is foreign' "$dir/err" ||
	complain 'the name of a file is printed as it is'
[ "$(wc -l <"$dir/err")" -eq 1 ] || complain 'the name of a file makes a line'

# No pool is in sight, so the module is not asked.
check 0 'unmapped' resolve --pid $$ 0x1000 4096
check 0 '"kind":"unmapped"' resolve --json --pid $$ 0x1000 4096
check 0 '"kind":"unmapped"' --json resolve --pid $$ 0x1000 4096
check 1 'no process has pid' resolve --pid 2147483647 0x1000 1

# Without the module every request fails, says why, and leaves stdout empty.
if [ ! -e /dev/kvpool/control ]; then
	check 1 'kvpoolctl: list: ' list --json
	check 1 'kvpoolctl: stats: ' stats
	check 1 'kvpoolctl: show: ' show pool
	check 1 'kvpoolctl: destroy: ' destroy pool
	check 1 'kvpoolctl: monitor: ' monitor --count 1
	check 1 'kvpoolctl: create: ' create --domain d --size 2M --persistent
	check 1 'kvpoolctl: resolve: ' resolve kvpool:d:1:1:0:1
fi

# A result that nobody got is a failure.
if [ -c /dev/full ]; then
	"$KVPOOLCTL" --help >/dev/full 2>"$dir/err"
	[ $? -eq 1 ] || complain 'a full disk looks like success'
fi

[ "$failed" -eq 0 ] && echo "ok - command line of kvpoolctl"
exit "$failed"
