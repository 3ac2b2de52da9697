#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rootfs.sh SUITE [PACKAGE...]: print a folder with rootfs.squashfs, a Debian
# userland with what the tests need and the packages named.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need mmdebstrap mksquashfs

suite=$1
shift
packages=(bash iproute2 kmod procps util-linux mount rdma-core ibverbs-providers
	ibverbs-utils libibverbs1 libmnl0 libjson-c5 numactl strace "$@")

# The mirror that this machine's own apt uses for its release.
mirror() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' |
		awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }'
}

# shellcheck disable=SC2317
build() {
	local from
	from=$(mirror)
	[ -n "$from" ] || fail "no apt source for $suite" "add one to this machine's apt sources"
	mmdebstrap --quiet --variant=apt --include="$(IFS=,; echo "${packages[*]}")" \
		--dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-exclude='/usr/share/man/*' \
		--dpkgopt=path-exclude='/usr/share/locale/*' \
		"$suite" "$1/root.tar" "$from"
	mkdir "$1/root"
	tar -C "$1/root" -xf "$1/root.tar" --exclude='./dev/*' --exclude='./var/lib/apt/lists/*' \
		--exclude='./var/cache/apt/*'
	groupadd -R "$1/root" -r kvpool
	useradd -R "$1/root" -M -u 1000 -s /bin/bash alice
	useradd -R "$1/root" -M -u 1001 -s /bin/bash bob
	usermod -R "$1/root" -aG kvpool alice
	mkdir -p "$1/root/payload"
	mksquashfs "$1/root" "$1/rootfs.squashfs" -comp lzo -quiet -no-progress
	rm -rf "$1/root" "$1/root.tar"
}
key=$( { echo "$suite" "${packages[@]}"; cat "$vm_dir/rootfs.sh"; } | hash_of)
cached "rootfs-$suite-$key" build
