# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts of this folder; sourced, never run.

# shellcheck disable=SC2034 # used by those who source this
vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KVPOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvpool}
mkdir -p "$cache"

# Building one cache entry must end within this many seconds.
build_limit=2400

# 125 is the harness's own failure, as with timeout(1) and env(1).
fail() {
	echo "tests/vm: $1; $2" >&2
	exit 125
}

need() {
	local command
	for command; do
		command -v "$command" >/dev/null ||
			fail "$command is not installed" "run tests/install-deps"
	done
}

# cached KEY COMMAND...: path of the cache entry KEY, which COMMAND fills when
# it isn't there; COMMAND gets an empty folder as last argument. An entry
# appears whole or not at all, and is built once however many ask for it.
#
# COMMAND is a process of its own: bash ignores errexit in whatever is called
# from a condition, so that a function would go on past its first error.
cached() {
	local entry=$cache/$1 class=${1%%-*} work
	shift
	if [ ! -e "$entry" ]; then
		exec 8>"$cache/.lock-$class"
		flock 8
		# Left by a build that was killed; whoever holds the lock owns them.
		rm -rf "$cache/.build-$class-"*
		if [ ! -e "$entry" ]; then
			work=$(mktemp -d "$cache/.build-$class-XXXXXX")
			if ! timeout -k 10 "$build_limit" "$@" "$work" >&2 8>&- </dev/null; then
				rm -rf "$work"
				fail "could not build ${entry##*/}" "the lines above say why"
			fi
			mv "$work" "$entry"
		fi
		exec 8>&-
	fi
	echo "$entry"
}

# The mirror that this machine's own apt uses for Debian itself. It holds every
# suite, also one that this machine does not use.
debian_mirror() {
	local from
	# shellcheck disable=SC2016
	from=$(apt-get indextargets --format '$(REPO_URI) $(LABEL) $(COMPONENT)' 'Created-By: Packages' |
		awk '$2 == "Debian" && $3 == "main" && !found++ { print $1 }')
	[ -n "$from" ] || fail "apt knows no Debian mirror" "run apt-get update"
	echo "$from"
}

# in_toolchain FOLDER SOURCE OUTPUT COMMAND...: run COMMAND in the root of
# toolchain.sh's FOLDER, in /source and with /output, where it finds these two.
# What is mounted for that is seen by nobody else, and ends with the command.
in_toolchain() {
	# shellcheck disable=SC2016
	unshare --mount --propagation private sh -ec '
		root=$1/root
		mount --bind "$2" "$root/source"
		mount --bind "$3" "$root/output"
		mount --bind /dev "$root/dev"
		mount -t proc proc "$root/proc"
		shift 3
		exec chroot "$root" env -C /source "$@"' sh "$@"
}

hash_of() { sha256sum | cut -c1-16; }
