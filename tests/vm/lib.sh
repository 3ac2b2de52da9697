# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts of this folder; sourced, never run.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$vm_dir/../.." && pwd)
cache=${KVPOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvpool}
mkdir -p "$cache"

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

# cached KEY BUILD-FUNCTION: path of the cache entry KEY, which BUILD-FUNCTION
# fills (it gets an empty folder) when it isn't there. An entry appears whole
# or not at all, and is built once however many ask for it.
cached() {
	local entry=$cache/$1 build=$2 work
	if [ ! -e "$entry" ]; then
		exec 8>"$cache/.lock-${1%%-*}"
		flock 8
		if [ ! -e "$entry" ]; then
			work=$(mktemp -d "$cache/.build-XXXXXX")
			if ! ("$build" "$work") >&2; then
				rm -rf "$work"
				fail "could not build $1" "the lines above say why"
			fi
			mv "$work" "$entry"
		fi
		exec 8>&-
	fi
	echo "$entry"
}

hash_of() { sha256sum | cut -c1-16; }
