# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts of this folder; sourced, never run.

# shellcheck disable=SC2034 # used by those who source this
vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KVPOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvpool}
mkdir -p "$cache"

# Building one cache entry must end within this many seconds.
build_limit=900

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

hash_of() { sha256sum | cut -c1-16; }
