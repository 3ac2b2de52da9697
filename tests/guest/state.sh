# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What must be the same after a test as before it; sourced by run-all.

# Memory is compared with this tolerance: the kernel's own caches breathe.
memory_tolerance_kib=8192

state_counts() {
	local pools='' pinned=0 dir file
	for dir in /sys/class/kvpool/*/; do
		[ "$(basename "$dir")" = control ] && continue
		[ -e "$dir/id" ] || continue
		pools+=" $(basename "$dir")"
		pinned=$((pinned + $(cat "$dir/pinned_blocks")))
	done
	echo "module $(lsmod | awk '$1 == "kvpool" { print $3 }')"
	echo "pools$pools"
	echo "pinned $pinned"
	[ -e /usr/bin/kvpoolctl ] && lsmod | grep -q '^kvpool ' &&
		kvpoolctl --json stats | tr -d ' \n' |
		grep -oE '"(pools|orphans|dying|bytes|sessions)":[0-9]+' || true
	for kind in pd cq qp mr cm_id; do
		echo "$kind $(rdma resource show "$kind" | grep -c 'comm [^[]')"
	done
	# What a test leaves running belongs to process 1 then. Zombies are not
	# running, they only wait to be collected.
	echo "left running $(ps -o stat=,comm= --ppid 1 | awk '$1 !~ /^Z/ { print $2 }' | sort | paste -sd' ')"
	echo "mounts $(grep -c kvpool /proc/mounts)"
	for file in /run/kvpool/*.journal /run/user/*/kvpool/*.journal; do
		[ ! -e "$file" ] || echo "journal $file"
	done
}

# Free memory in KiB, with what freed pages keep in the lists of processors
# ("count:" of zoneinfo, in pages), where a 2 MiB block may stay for long.
state_memory() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '$1 == "MemFree:" || $1 == "Slab:" || $1 == "PageTables:" { sum += $2 }
		$1 == "count:" { sum += 4 * $2 } END { print sum }' /proc/meminfo /proc/zoneinfo
}

# What the kernel complains of, but for what tests provoke: soft-RoCE on a
# registration or transfer that it refuses, netlink on a message of bad form, which any user
# can send, the OOM killer, a page table that was refused, allocations that were made
# to fail (a directory of sysfs, kmemleak's own), KUnit; and for what comes of the machine:
# that it is emulated and slow, and that a dummy interface has no speed.
state_log() {
	dmesg --level=emerg,alert,crit,err,warn |
		sed '/invoked oom-killer/,/out of memory: Killed process/d' | grep -vE \
		-e 'rdma_rxe: .*Unable to pin memory region' \
		-e 'rxe[0-9]+: (pd|qp)#[0-9]+ .*(returned err = -|non-flush error status)' \
		-e 'netlink: .*(invalid length|bytes leftover)|validate_(nla|parse): .* suppressed' \
		-e 'kobject_add_internal failed for (failing|control|reserve|node[0-9]|kvpool[a-z_]*) ' \
		-e 'kobject: can not set name properly|kobject_create_and_add: kobject_add error: -12' \
		-e 'VM_FAULT_OOM leaked out|loading test module taints kernel' \
		-e 'kmemleak: Cannot allocate a scan area' \
		-e 'hrtimer: interrupt took|speed is unknown, defaulting'
}

# Leaks that kmemleak finds. Looking takes it many seconds, so it is done once, after
# the last test; a report names the process. The second look is for what it saw for
# the first time, and it passes over what is younger than 5 seconds.
state_leaks() {
	local kmemleak=/sys/kernel/debug/kmemleak
	sleep 5
	# It may have turned itself off: then this says so.
	{ echo scan >$kmemleak && echo scan >$kmemleak && cat $kmemleak && echo clear >$kmemleak; } 2>&1
}

# state_save; state_check prints what differs, and nothing when nothing does.
state_save() {
	state_counts >/tmp/state.before
	memory_before=$(state_memory)
	log_before=$(state_log | wc -l)
}

state_check() {
	local memory new
	state_counts >/tmp/state.after
	diff /tmp/state.before /tmp/state.after | grep '^[<>]' | tr '\n' ' '
	memory=$(state_memory)
	[ $((memory_before - memory)) -le $memory_tolerance_kib ] ||
		echo "memory: $((memory_before - memory)) KiB are missing "
	new=$(($(state_log | wc -l) - log_before))
	[ "$new" = 0 ] || {
		echo "kernel log: "
		state_log | tail -n "$new"
	}
}
