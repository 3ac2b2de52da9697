# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What must be the same after a test as before it; sourced by run-all.

# Memory is compared with this tolerance: the kernel's own caches breathe.
memory_tolerance_kib=8192

state_counts() {
	local pools='' pinned=0 dir
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
}

# Free memory in KiB, with what freed pages keep in the lists of processors
# ("count:" of zoneinfo, in pages), where a 2 MiB block may stay for long.
state_memory() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '$1 == "MemFree:" || $1 == "Slab:" || $1 == "PageTables:" { sum += $2 }
		$1 == "count:" { sum += 4 * $2 } END { print sum }' /proc/meminfo /proc/zoneinfo
}

# What soft-RoCE says of a registration that it refuses, which tests provoke,
# and of the dummy network device below it, is no complaint.
state_warnings() {
	dmesg --level=emerg,alert,crit,err,warn |
		grep -vE 'rdma_rxe: .*Unable to pin memory region|dummy[0-9]+ speed is unknown'
}

state_log() { state_warnings | wc -l; }

# state_save; state_check prints what differs, and nothing when nothing does.
state_save() {
	state_counts >/tmp/state.before
	memory_before=$(state_memory)
	log_before=$(state_log)
}

state_check() {
	local memory new
	state_counts >/tmp/state.after
	diff /tmp/state.before /tmp/state.after | grep '^[<>]' | tr '\n' ' '
	memory=$(state_memory)
	[ $((memory_before - memory)) -le $memory_tolerance_kib ] ||
		echo "memory: $((memory_before - memory)) KiB are missing "
	new=$(($(state_log) - log_before))
	[ "$new" = 0 ] || {
		echo "kernel log: "
		state_warnings | tail -n "$new"
	}
}
