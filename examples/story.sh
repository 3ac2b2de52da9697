#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# story.sh [FIRST-STEP]: a store and inference ranks, each a process of its own,
# share KV-cache pools over soft-RoCE; then what can go wrong goes wrong. Run as
# root in a guest with kvpool, rxe0 and rxe1. Every step compares numbers; the
# last line is "story: done, N steps" or "story: failed at step K: WHY".
set -uo pipefail
cd "$(dirname "$0")" || exit 1

step=$((${1:-1} - 1))
devices=(rxe0 rxe1)
dir=$(mktemp -d)
declare -A pid=() to=() from=()
reply=''

# ---------------------------------------------------------------- reporting

step() {
	step=$((step + 1))
	printf '\n%2d. %s\n' "$step" "$*"
}

say() { printf '      %s\n' "$*"; }

fail() {
	trap '' EXIT
	# Waited for, or the shell reports each as killed.
	[ ${#pid[@]} = 0 ] || { kill -KILL "${pid[@]}"; wait "${pid[@]}"; } 2>/dev/null
	rm -rf "$dir"
	echo "story: failed at step $step: $*"
	exit 1
}
trap 'fail "the script ended early"' EXIT
trap : PIPE	# a process that ended is told by its missing answer

is() { # WHAT GOT WANT: a fact, which must be so
	[ "$2" = "$3" ] || fail "$1: $2, expected $3"
	say "$1: $2"
}

has() { # WHAT TEXT PART: the text says it
	[[ $2 == *"$3"* ]] || fail "$1 does not say \"$3\": $2"
}

# What the kernel does behind the last user's back, on a work queue. Ten
# seconds are enough for it ten thousand times over.
becomes() { # WHAT WANT COMMAND...
	local what=$1 want=$2 got end=$((SECONDS + 10))
	shift 2
	until got=$("$@") && [ "$got" = "$want" ]; do
		[ $SECONDS -lt $end ] || fail "$what: $got, expected $want"
	done
	say "$what: $got"
}

# ---------------------------------------------------------------- processes

# An ordinary user, who is in the group kvpool, and may lock 512 MiB.
as_user() {
	ulimit -l $((512 * 1024))
	# As a login makes it: the library keeps its journals there.
	XDG_RUNTIME_DIR=/run/user/$(id -u alice)
	export XDG_RUNTIME_DIR
	exec setpriv --reuid alice --regid alice --init-groups "$@"
}

start() { # NAME PROGRAM [ARGUMENT]...: with pipes for commands and answers
	local name=$1 w r fd
	shift
	mkfifo "$dir/$name.to" "$dir/$name.from" || fail "mkfifo"
	(
		# Else the pipes of the others would not end when they should.
		for fd in "${to[@]}" "${from[@]}"; do exec {fd}>&-; done
		as_user "$@"
	) <"$dir/$name.to" >"$dir/$name.from" &
	pid[$name]=$!
	exec {w}>"$dir/$name.to" {r}<"$dir/$name.from"
	to[$name]=$w
	from[$name]=$r
	answer_of "$name"
	say "$name is process ${pid[$name]}"
}

tell() { printf '%s\n' "$2" >&"${to[$1]}"; } # NAME COMMAND

answer_of() { # NAME: sets $reply
	read -r -t 60 reply <&"${from[$1]}" || fail "$1 gave no answer"
}

ask() { # NAME COMMAND: the answer without "ok" is in $reply
	tell "$1" "$2"
	answer_of "$1"
	[[ $reply == ok* ]] || fail "$1: $2: $reply"
	reply=${reply#ok}
	reply=${reply# }
}

ask_fails() { # NAME COMMAND: it must fail; the failure is in $reply
	tell "$1" "$2"
	answer_of "$1"
	[[ $reply == failed* ]] || fail "$1: $2 should have failed: $reply"
	reply=${reply#failed }
}

forget() {
	local w=${to[$1]} r=${from[$1]}
	exec {w}>&- {r}<&-
	unset "pid[$1]" "to[$1]" "from[$1]"
}

finish() { # NAME: end it by the end of its input
	local id=${pid[$1]} status=0
	forget "$1"
	wait "$id" || status=$?
	is "exit status of $1" $status 0
}

kill_hard() { # NAME
	local id=${pid[$1]} status=0
	kill -KILL "$id"
	wait "$id" 2>/dev/null || status=$?
	is "exit status of $1 (128 + SIGKILL)" $status 137
	forget "$1"
}

# -------------------------------------------------------------------- facts

list() { kvpoolctl list | sed 's/^/      | /'; }
pools_in() { kvpoolctl list "$@" | tail -n +2 | wc -l; }
sums() { printf '%s\n' "${checksum[@]}" | sort -u | wc -l; }
stat_of() { kvpoolctl --json stats | tr -d ' \n' | grep -oP "\"$1\":\K[0-9]+"; }
pools_and_orphans() { echo "$(stat_of pools) $(stat_of orphans)"; }
sysfs() { cat "/sys/class/kvpool/$1/$2"; }
mrs_of() { rdma resource show mr | grep -c " pid ${pid[$1]} "; }
mrs() { rdma resource show mr | wc -l; }
column() { # POOL-NAME HEADING: of the list
	kvpoolctl list | awk -v name="$1" -v heading="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR > 1 && $at["NAME"] == name { print $at[heading] }'
}
pins() { # POOL-NAME...: blocks that devices hold, as the kernel counts
	local name sum=0
	for name; do sum=$((sum + $(sysfs "$name" pinned_blocks))); done
	echo $sum
}
large_kib() { # NAME: KiB of pools that the process maps by 2 MiB entries
	awk '/kvpool:/ { in_pool = 1; next } /^[0-9a-f]+-/ { in_pool = 0 }
		in_pool && $1 == "FilePmdMapped:" { sum += $2 } END { print sum + 0 }' \
		"/proc/${pid[$1]}/smaps"
}
free_kib() { # what freed pages keep in the lists of processors counts as free
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '$1 == "MemFree:" || $1 == "Slab:" || $1 == "PageTables:" { sum += $2 }
		$1 == "count:" { sum += 4 * $2 } END { print sum }' /proc/meminfo /proc/zoneinfo
}

# -------------------------------------------------------------------- story

step "The machine: the module is loaded, there are two RDMA devices and no pools."
chown alice: "$dir" || fail "no user alice"
install -d -m 700 -o alice -g alice "/run/user/$(id -u alice)" || fail "no run-time directory"
is "RDMA devices" "$(rdma link show | grep -cE 'rxe[01]/1 state ACTIVE')" 2
is "pools" "$(stat_of pools)" 0
is "memory that pools hold" "$(stat_of bytes)" 0
is "memory regions" "$(mrs)" 0
free_before=$(free_kib)
say "free memory: $((free_before / 1024)) MiB"

step "The quick start of the manual: one pool, mapped and registered by one program."
out=$(as_user ./quickstart) || fail "quickstart ended with $?"
has "quickstart" "$out" "registered 67108864 bytes"
say "$out"
becomes "pools when it has ended" 0 stat_of pools

step "A store starts. It owns the domain \"kv\" and is a process of its own."
start store ./store "$dir/store" rxe0

step "Two ranks start, and get a target and a draft pool each, by the text of spans."
declare -A spans=() checksum=()
for n in 0 1; do
	start "rank$n" ./rank "$n" "$dir/store" "${devices[@]}"
	ask "rank$n" attach
	read -r "spans[target-$n]" "spans[draft-$n]" <<<"$reply"
	say "rank$n got $reply"
done
all=(target-0 draft-0 target-1 draft-1)
list
is "pools in the domain kv" "$(pools_in --domain kv)" 4
for name in "${all[@]}"; do
	is "$name: owner, role, rank" \
		"$(column "$name" OWNER) $(sysfs "$name" role) $(sysfs "$name" rank)" \
		"${pid[store]} ${name%-*} ${name#*-}"
done
is "memory that pools hold" "$(stat_of bytes)" $((2 * (64 + 16) * 1024 * 1024))

step "Each rank fills its pools; the store, which maps the spans, reads the same bytes."
for n in 0 1; do
	ask "rank$n" fill
	is "KiB that rank$n maps by entries of 2 MiB" "$(large_kib "rank$n")" $((80 * 1024))
	for buffer in 0 1; do
		ask "rank$n" "sum $buffer"
		want=$reply
		name=target-$n
		[ $buffer = 0 ] || name=draft-$n
		ask store "sum ${spans[$name]}"
		is "checksum of $name, by the store" "$reply" "$want"
		checksum[$name]=$reply
	done
done
is "different checksums" "$(sums)" 4

step "The bug of sglang 28873: rank 0's draft comes from mmap(). It has no span..."
ask_fails rank0 share-mmap
say "rank0: $reply"
has "the error" "$reply" "private anonymous memory"

step "... and the registration of target and draft is refused before anything is registered."
ask_fails rank0 register-mmap
say "rank0: $reply"
has "the error" "$reply" "phase check: buffer 1"
has "the error" "$reply" "private anonymous memory"
is "memory regions of rank0" "$(mrs_of rank0)" 0
is "pinned blocks of its pools" "$(pins target-0 draft-0)" 0
ask rank0 visible
is "buffers that the rest of rank0 sees" "$reply" 0

step "Rank 0 takes its draft from the domain: all at both devices, in one transaction."
ask rank0 register
is "registrations" "$reply" 4
is "memory regions of rank0" "$(mrs_of rank0)" 4
is "pinned blocks of its pools (64 and 16 MiB)" "$(pins target-0 draft-0)" 40
ask rank0 visible
is "buffers that the rest of rank0 sees" "$reply" 2

step "Rank 1's fourth registration fails: the three before it are undone in reverse."
ask_fails rank1 "register-failing 4"
say "rank1: ${reply#*: }"
is "rank1" "${reply%%: *}" "calls=4 undone=3 reverse=yes left=none pinned=40 then=0"
has "the first error" "$reply" "phase register, device rxe1: buffer 1"
has "the first error" "$reply" "Cannot allocate memory (12)"
is "memory regions of rank1" "$(mrs_of rank1)" 0
is "pinned blocks of its pools" "$(pins target-1 draft-1)" 0
ask rank1 visible
is "buffers that the rest of rank1 sees" "$reply" 0
is "memory regions of rank0, as before" "$(mrs_of rank0)" 4
is "pinned blocks of rank0's pools, as before" "$(pins target-0 draft-0)" 40

step "The cause is gone, and rank 1 registers as well."
ask rank1 register
is "registrations" "$reply" 4
is "memory regions of rank1" "$(mrs_of rank1)" 4
is "pinned blocks of its pools" "$(pins target-1 draft-1)" 40

step "The store registers what the ranks name, at its own device. It is the owner: COMMITTED."
for name in "${all[@]}"; do
	is "$name before" "$(sysfs "$name" registration)" ALLOCATED
done
for n in 0 1; do
	ask "rank$n" share
	is "registrations for rank$n" "$reply" 2
done
is "memory regions of the store" "$(mrs_of store)" 4
for name in "${all[@]}"; do
	is "/sys/class/kvpool/$name/{state,pinned_blocks,registration}" \
		"$(sysfs "$name" state) $(sysfs "$name" pinned_blocks) $(sysfs "$name" registration)" \
		"live $(sysfs "$name" blocks) COMMITTED"
done
list

step "Rank 0 writes 4 pages of its target pool into rank 1's over rxe0, by RDMA."
tell rank0 "listen $dir/rank0"
answer_of rank0
ask rank1 "connect $dir/rank0"
is "rank1 is connected to rank" "$reply" 0
answer_of rank0
is "rank0 is connected to rank" "${reply#ok }" 1
ask rank1 "verify 0 8 4 1"
is "rank1's pages 8 to 11 are its own" "$reply" yes
ask rank0 "write 0 8 4 0"
ask rank1 "verify 0 8 4 0"
is "rank1's pages 8 to 11 are rank0's now" "$reply" yes
ask rank1 "verify 0 0 8 1"
is "the pages before them are its own" "$reply" yes
ask rank1 "verify 0 12 52 1"
is "the pages behind them are its own" "$reply" yes
ask rank1 "sum 0"
want=$reply
ask store "sum ${spans[target-1]}"
is "checksum of target-1, by the store" "$reply" "$want"
[ "$reply" != "${checksum[target-1]}" ] || fail "the checksum of target-1 did not change"
say "before the transfer it was ${checksum[target-1]}"

step "Rank 1 reads 4 pages of rank 0's draft pool over rxe1, and rank 0 finds them unharmed."
ask rank1 "read 1 4 4 1"
ask rank1 "verify 1 4 4 0"
is "rank1's draft pages 4 to 7 are rank0's now" "$reply" yes
ask rank1 "verify 1 8 8 1"
is "the pages behind them are its own" "$reply" yes
ask rank0 "verify 1 0 16 0"
is "rank0's draft is its own" "$reply" yes

step "Empty state buffers (sglang PR 35689): 42 of 294 are named, or left out of the list."
out=$(as_user ./state_buffers rxe1) || fail "state_buffers ended with $?"
while read -r line; do say "$line"; done <<<"$out"
has "the refusal" "$out" "rejected empty=42 first=6: phase list: 42 of 294"
has "the rest" "$out" "registered count=252 aligned=252"

step "A rank that owns its pool itself registers it, and shares it with the store."
start rank2 ./rank 2 "$dir/store" "${devices[@]}"
ask rank2 own
spans[target-2]=$reply
ask rank2 fill
ask rank2 "sum 0"
sum=$reply
ask rank2 register
is "registrations" "$reply" 2
is "target-2: owner, registration" "$(column target-2 OWNER) $(sysfs target-2 registration)" \
	"${pid[rank2]} COMMITTED"
ask rank2 share
is "registrations of the store" "$reply" 1
is "memory regions of rank2 and of the store" "$(mrs_of rank2) $(mrs_of store)" "2 5"

step "That rank is killed. Its pool is an orphan: out of reach, but not out of the store's hands."
kill_hard rank2
becomes "orphans" 1 stat_of orphans
list
is "pools in state orphan" "$(pools_in --state orphan)" 1
is "its device node is gone" "$([ -e /dev/kvpool/target-2 ] || echo yes)" yes
kvpoolctl resolve "${spans[target-2]}" >"$dir/resolve" 2>&1
is "exit status of resolve: not live" $? 3
say "$(tail -n 1 "$dir/resolve")"
ask store "sum ${spans[target-2]}"
is "checksum of the orphan, by the store" "$reply" "$sum"
is "blocks that the store's device pins" "$(kvpoolctl list --state orphan | awk 'END { print $(NF-1) }')" 32

step "The store, its last user, lets go: the pool ends, and its memory is free."
ask store "release ${spans[target-2]}"
becomes "pools and orphans" "4 0" pools_and_orphans
becomes "memory that pools hold" $((2 * (64 + 16) * 1024 * 1024)) stat_of bytes
is "memory regions of the store" "$(mrs_of store)" 4

step "The store is killed. Its pools are orphans, and the ranks transfer on."
kill_hard store
becomes "orphans" 4 stat_of orphans
list
is "memory regions of the ranks" "$(mrs_of rank0) $(mrs_of rank1)" "4 4"
ask rank0 "write 1 0 2 1"
ask rank1 "verify 1 0 2 0"
is "rank1's draft pages 0 and 1 are rank0's now" "$reply" yes

step "The ranks end, and with them the pools. Everything is as it was."
finish rank0
becomes "pools and orphans" "0 2" pools_and_orphans
finish rank1
becomes "pools and orphans" "0 0" pools_and_orphans
becomes "memory that pools hold" 0 stat_of bytes
is "memory regions" "$(mrs)" 0
missing=$((free_before - $(free_kib)))
[ $missing -le 8192 ] || fail "$missing KiB of memory are missing"
say "free memory: $((free_before / 1024)) MiB before, $(((free_before - missing) / 1024)) MiB now"
rmmod kvpool || fail "the module can't be unloaded"
say "the module is unloaded"

trap - EXIT
rm -rf "$dir"
echo
echo "story: done, $step steps"
