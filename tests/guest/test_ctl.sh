#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kvpoolctl against the module, as an operator uses it.
# shellcheck disable=SC2154 # coproc sets NAME_PID
work=$(mktemp -d)
trap 'rm -rf "$work"; kill $(jobs -p) 2>/dev/null' EXIT
failed=0

bad() {
	echo "not ok - test_ctl: $case: $1"
	failed=1
	good=0
}

# begin NAME ... end: a case.
begin() { case=$1 good=1; }
end() { [ $good = 0 ] || echo "ok - test_ctl: $case"; }

# wants STATUS TEXT COMMAND...: its exit status, and a text that it prints.
wants() {
	local status=$1 text=$2 got
	shift 2
	"$@" >"$work/out" 2>&1
	got=$?
	[ $got = "$status" ] || bad "$* ended with $got, not $status: $(cat "$work/out")"
	grep -qF -- "$text" "$work/out" || bad "$* does not say '$text': $(cat "$work/out")"
}

begin "create, list, show, destroy"
wants 0 "state=live" kvpoolctl create --domain kv --name ctl --size 5M --persistent \
	--role target --rank 2 --label 'a "b" c'
wants 0 "ctl" kvpoolctl list
wants 0 '"length":5242880' kvpoolctl --json list --role target
wants 0 '"mapped-length":6291456' kvpoolctl show ctl --json
wants 0 '"label":"a \"b\" c"' kvpoolctl show ctl --json
wants 0 "mapped length:" kvpoolctl show ctl
id=$(cat /sys/class/kvpool/ctl/id) generation=$(cat /sys/class/kvpool/ctl/generation)
wants 0 "ctl" kvpoolctl show "id:$id.$generation"
wants 1 "generation" kvpoolctl show "id:$id.5"
wants 0 "destroyed" kvpoolctl destroy ctl
wants 1 "no such pool" kvpoolctl destroy ctl
[ ! -e /dev/kvpool/ctl ] || bad "the node is still there"
end

begin "errors name cause and remedy"
wants 2 "--persistent" kvpoolctl create --domain kv --size 4M
wants 1 "max_bytes" kvpoolctl create --domain kv --size 900G --persistent
wants 1 "node 7" kvpoolctl create --domain kv --size 2M --node 7 --persistent
wants 1 "A-Z" kvpoolctl create --domain 'd/d' --size 2M --persistent
wants 1 "control" kvpoolctl create --domain kv --name control --size 2M --persistent
wants 2 "" kvpoolctl create --domain kv --size 0 --persistent
wants 2 "" kvpoolctl create --domain kv --size 2X --persistent
kvpoolctl create --domain kv --name one --size 2M --persistent >/dev/null
wants 1 "taken" kvpoolctl create --domain kv --name one --size 2M --persistent
wants 1 "claim" kvpoolctl set one --lifetime owner
kvpoolctl destroy one >/dev/null
end

begin "hold and claim end with their session"
coproc hold { exec kvpoolctl create --domain kv --name held --size 2M --hold; }
read -r line <&"${hold[0]}"
[[ $line == *held* ]] || bad "create --hold printed '$line'"
wants 0 "$hold_PID" kvpoolctl list
wants 1 "" kvpoolctl claim held
pid=$hold_PID
kill "$pid"
wait "$pid"
wants 1 "no such pool" kvpoolctl show held
kvpoolctl create --domain kv --name kept --size 2M --persistent >/dev/null
coproc claim { exec kvpoolctl claim kept; }
read -r line <&"${claim[0]}"
[[ $line == *kept* ]] || bad "claim printed '$line'"
wants 1 "owns" kvpoolctl claim kept
pid=$claim_PID
kill "$pid"
wait "$pid"
wants 0 "owner:          none" kvpoolctl show kept
kvpoolctl destroy kept >/dev/null
end

begin "set"
kvpoolctl create --domain kv --name tags --size 2M --persistent >/dev/null
wants 0 "rank=5" kvpoolctl set tags --rank 5 --role draft --label new
[ "$(cat /sys/class/kvpool/tags/role)" = draft ] || bad "sysfs has the old role"
wants 0 "" kvpoolctl set tags --mode 0644
[ "$(stat -c %a /dev/kvpool/tags)" = 644 ] || bad "the node has the old mode"
kvpoolctl destroy tags >/dev/null
end

begin "reserve"
wants 0 "policy:         first" kvpoolctl reserve
wants 0 '"used":' kvpoolctl reserve --node 0 --size 4M --policy only --uid 1000 --quota 2M --json
grep -q '"uid":1000,"quota":2097152,"used":0' <(tr -d ' \n' <"$work/out") ||
	bad "the quota is not shown: $(cat "$work/out")"
[ "$(cat /sys/class/kvpool/control/reserve/node0/target)" = 4194304 ] || bad "sysfs has another target"
[ "$(cat /sys/module/kvpool/parameters/reserve_only)" = Y ] || bad "the policy is not in force"
wants 1 "node 7" kvpoolctl reserve --node 7 --size 4M
wants 0 "node 0: 0 of 0 ready" kvpoolctl reserve --node 0 --size 0 --policy first \
	--uid 1000 --quota default
end

begin "monitor"
coproc monitor { exec kvpoolctl monitor --json --list; }
kvpoolctl create --domain kv --name seen --size 2M --persistent >/dev/null
kvpoolctl set seen --label x >/dev/null
kvpoolctl destroy seen >/dev/null
events=''
while read -r -t 20 line <&"${monitor[0]}"; do
	event=$(grep -oE '"event":"[a-z]+"' <<<"$line")
	events+=" ${event:9:-1}"
	[[ $event == *destroy* ]] && break
done
# The monitor may have started late: what it missed of this is in its list.
[[ $events =~ (create|list).*destroy$ ]] || bad "events were$events"
pid=$monitor_PID
kill "$pid"
wait "$pid"
end

begin "resolve a process's range"
kvpoolctl create --domain kv --name map --size 4M --persistent >/dev/null
coproc holder { exec ./test_mapping hold /dev/kvpool/map; }
read -r addr <&"${holder[0]}"
pid=$holder_PID
wants 0 "id:$(cat /sys/class/kvpool/map/id)" kvpoolctl resolve --pid $pid "$addr" 4M
wants 0 '"kind":"pool"' kvpoolctl resolve --json --pid $pid "$addr" 4M
wants 0 "anon" kvpoolctl resolve --pid $pid "$(grep -m1 '\[stack\]' /proc/$pid/maps | cut -d' ' -f1)"
wants 1 "" kvpoolctl resolve --pid 999999 "$addr" 4M
wants 1 "in use: 1 mappings" kvpoolctl destroy map
kill -KILL $pid
wait $pid 2>/dev/null
wants 0 "" kvpoolctl destroy map
end

exit $failed
