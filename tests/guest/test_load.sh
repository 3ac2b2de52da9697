#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module as modinfo shows it, its loading and unloading, and loads that fail.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# verdict NAME COMMAND...: a case; the command says what is wrong.
verdict() {
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok - test_load: $name"
	else
		echo "not ok - test_load: $name: $(tr '\n' ' ' <"$work/log")"
		failed=1
	fi
}

# is WANTED GOT WHAT
is() {
	[ "$1" = "$2" ] || { echo "$3 is '$2', not '$1'"; return 1; }
}

described() {
	local version
	version=$(kvpoolctl --version)
	is GPL "$(modinfo -F license kvpool)" licence &&
		is "${version##* }" "$(modinfo -F version kvpool)" version &&
		is "Pinned, huge-page, ownership-tagged memory pools" "$(modinfo -F description kvpool)" description &&
		is "kvpool developers" "$(modinfo -F author kvpool)" author &&
		is net-pf-16-proto-16-family-kvpool "$(modinfo -F alias kvpool)" alias &&
		is "" "$(modinfo -F depends kvpool)" "list of modules that it needs" || return
	is "create_workers max_bytes max_pools min_available reserve reserve_only reserve_quota" \
		"$(modinfo -F parm kvpool | cut -d: -f1 | LC_ALL=C sort | paste -sd' ')" "list of parameters" &&
		is "" "$(modinfo -F parm kvpool |
			grep -vE '^[a-z_]+:[A-Z].{20,}\(default: .+\) \((array of )?(uint|ullong|bool)\)$')" \
			"list of parameters without a description, default or type"
}

# Out of the tree, and not signed by a key that the kernel knows, if it looks for
# signatures: nothing worse.
tainted() {
	local signed=''
	[ ! -e /sys/module/module/parameters/sig_enforce ] || signed=E
	is "O$signed" "$(cat /sys/module/kvpool/taint)" taint
}

# What is left of the module after it was unloaded, or was not loaded.
nothing_left() {
	local path
	for path in /sys/module/kvpool /sys/class/kvpool /sys/devices/virtual/kvpool /dev/kvpool/control; do
		[ ! -e "$path" ] || { echo "$path is left"; return 1; }
	done
	! grep -H kvpool /proc/devices /proc/filesystems /proc/mounts || return
	# A worker of the kernel goes on being called after the last work queue that it served.
	! ps -e -o comm= | grep -v '^kworker' | grep kvpool || return
	# By name it would be loaded.
	! genl ctrl list | grep kvpool
}

# A load takes a second on a kernel that finds faults.
rounds=100
[[ $(uname -r) != *-debug ]] || rounds=20

again_and_again() {
	local round
	for round in $(seq $rounds); do
		rmmod kvpool && [ ! -e /dev/kvpool/control ] && modprobe kvpool && [ -c /dev/kvpool/control ] || {
			echo "in round $round"
			return 1
		}
	done
	rmmod kvpool && nothing_left && modprobe kvpool
}

# step_fails FUNCTION[|OTHER-NAME] CALL RESULT TEXT: when this call of it by the
# module's init fails so, insmod says TEXT, nothing is left, and the next load works.
step_fails() {
	local symbol
	symbol=$(grep -owE -m 1 "T ($1)" /proc/kallsyms | cut -c3-)
	insmod ./fail_call.ko symbol="$symbol" call="$2" result="$3" || return
	if insmod "$module" 2>"$work/said"; then
		echo "loaded, although $symbol failed"
		return 1
	fi
	is "$2" "$(cat /sys/module/fail_call/parameters/calls)" "count of calls" && rmmod fail_call || return
	grep -q "$4" "$work/said" || { cat "$work/said"; return 1; }
	nothing_left && insmod "$module" && [ -c /dev/kvpool/control ] && rmmod kvpool && nothing_left
}

# calls_of FUNCTION: how many calls of it a load makes.
calls_of() {
	insmod ./fail_call.ko symbol="$1" call=0 && insmod "$module"
	cat /sys/module/fail_call/parameters/calls
	rmmod kvpool fail_call
}

verdict "modinfo" described
verdict "taint" tainted
verdict "load and unload again and again" again_and_again

module=$(modinfo -n kvpool)
nodes=$(find /sys/devices/virtual/kvpool -type d -path '*/reserve/node*' | wc -l)
rmmod kvpool
enomem="Cannot allocate memory"
verdict "no thread for the reserve" step_fails kthread_create_on_node 1 -12 "$enomem"
verdict "no work queue for creation" step_fails 'alloc_workqueue|alloc_workqueue_noprof' 1 0 "$enomem"
verdict "no work queue for the reaper" step_fails 'alloc_workqueue|alloc_workqueue_noprof' 2 0 "$enomem"
# Not EEXIST, as for a class that is there: 7.3 turns that into EBUSY.
verdict "class refused" step_fails 'class_register|__class_register' 1 -12 "$enomem"
verdict "no device numbers" step_fails alloc_chrdev_region 1 -16 "Device or resource busy"
verdict "pools' nodes can't be opened" step_fails cdev_add 1 -12 "$enomem"
verdict "the control node can't be opened" step_fails cdev_add 2 -12 "$enomem"
verdict "no control node" step_fails device_create 1 -12 "$enomem"
# The kernel makes directories for every module first, how many depends on it.
directory=$(($(calls_of kobject_create_and_add) - nodes))
verdict "no directory of the reserve" step_fails kobject_create_and_add "$directory" 0 "$enomem"
verdict "no directory of a node" step_fails kobject_create_and_add $((directory + 1)) 0 "$enomem"
verdict "netlink family refused" step_fails genl_register_family 1 -12 "$enomem"
modprobe kvpool
chgrp kvpool /dev/kvpool/control
exit $failed
