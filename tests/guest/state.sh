# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What must be the same after a test as before it; sourced by run-all. Forking and
# running programs takes seconds on the debug kernel, so bash does itself what it can.

# Memory is compared with this tolerance: the kernel's own caches breathe.
memory_tolerance_kib=8192

# Prints into the file.
state_counts() {
	local pools='' pinned=0 orphans='' mounts=0 dir value line parent comm file
	for dir in /sys/class/kvpool/*/; do
		[ -e "${dir}id" ] || continue
		read -r value <"${dir}pinned_blocks" || continue
		pools+=" ${dir#/sys/class/kvpool/}"
		pinned=$((pinned + value))
	done
	# What a test leaves running belongs to process 1 then. Zombies are not running,
	# they only wait to be collected.
	for file in /proc/[0-9]*/stat; do
		read -r line 2>/dev/null <"$file" || continue
		comm=${line#*(} comm=${comm%)*}
		read -r value parent _ <<<"${line##*) }"
		[ "$parent" != 1 ] || [ "$value" = Z ] || orphans+=" $comm"
	done
	while read -r line; do
		[[ $line != *kvpool* ]] || mounts=$((mounts + 1))
	done </proc/mounts
	value=none
	[ ! -e /sys/module/kvpool/refcnt ] || read -r value </sys/module/kvpool/refcnt
	{
		echo "module $value"
		echo "pools$pools"
		echo "pinned $pinned"
		echo "left running$orphans"
		echo "mounts $mounts"
		for file in /run/kvpool/*.journal /run/user/*/kvpool/*.journal; do
			[ ! -e "$file" ] || echo "journal $file"
		done
		[ "$value" = none ] || kvpoolctl --json stats |
			grep -E '"(pools|orphans|dying|bytes|sessions)":'
		# Those of the kernel itself are among them, as many at any time.
		rdma resource
	} >"$1"
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
# to fail (a directory of sysfs, kmemleak's own), KUnit, memory that failed; and for what
# comes of the machine: that it is emulated and slow, and that a dummy interface has no speed.
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
		-e 'Injecting memory failure|Memory failure: 0x|Unpoison: |MCE: Killing test_poison|has a bad page' \
		-e 'hrtimer: interrupt took|speed is unknown, defaulting'
}

# Leaks that kmemleak finds. Looking takes it many seconds, so it is done once, after
# the last test; a report names the process. The second look is for what it saw for
# the first time, and it passes over what is younger than 5 seconds. The core of 6.1
# leaks the name of a class that it could not register; a class that the module
# forgets would show by more than its name.
state_leaks() {
	local kmemleak=/sys/kernel/debug/kmemleak
	sleep 5
	# It may have turned itself off: then this says so.
	{ echo scan >$kmemleak && echo scan >$kmemleak &&
		awk 'function tell() { if (leak !~ /kobject_set_name\+[^\n]*\n[^\n]*__class_register\+/) printf "%s", leak }
			/^unreferenced/ { tell(); leak = "" } { leak = leak $0 "\n" } END { tell() }' \
			$kmemleak && echo clear >$kmemleak; } 2>&1
}

# Take the state as it is now for what it shall be.
state_save() {
	state_counts /tmp/state.before
	memory_before=$(state_memory)
	mapfile -t log_before < <(state_log)
}

# Writes what differs into the file, and nothing when nothing does. What it is now
# is what it shall be after the next test.
state_check() {
	local memory log
	state_counts /tmp/state.after
	memory=$(state_memory)
	mapfile -t log < <(state_log)
	{
		cmp -s /tmp/state.before /tmp/state.after ||
			diff /tmp/state.before /tmp/state.after | grep '^[<>]' | tr '\n' ' '
		[ $((memory_before - memory)) -le $memory_tolerance_kib ] ||
			echo "memory: $((memory_before - memory)) KiB are missing "
		[ ${#log[@]} = ${#log_before[@]} ] || {
			echo "kernel log: "
			printf '%s\n' "${log[@]:${#log_before[@]}}"
		}
	} >"$1"
	mv /tmp/state.after /tmp/state.before
	memory_before=$memory
	log_before=("${log[@]}")
}
