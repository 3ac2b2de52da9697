#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rootfs.sh SUITE [PACKAGE...]: print a folder with rootfs.squashfs, a Debian
# userland with what the tests need and the packages named.
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

base_packages=(bash iproute2 kmod procps util-linux mount rdma-core ibverbs-providers
	ibverbs-utils libibverbs1 libmnl0 libjson-c5 numactl strace)

# build SUITE PACKAGE,... FOLDER
build() {
	local suite=$1 packages=$2 root=$3/root tar=$3/root.tar from
	from=$(debian_mirror)
	# With --include and no apt inside: the host's apt resolves and unpacks.
	mmdebstrap --quiet --variant=essential --include="$packages" \
		--aptopt='Acquire::Languages "none"' \
		--dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-exclude='/usr/share/man/*' \
		--dpkgopt=path-exclude='/usr/share/locale/*' \
		"$suite" "$tar" "$from"
	# By way of an archive: in this folder nothing is ever mounted, so that
	# removing what a killed build left cannot reach into the host's /dev.
	mkdir "$root"
	tar -C "$root" -xf "$tar" --exclude='./dev/*' --exclude='./var/lib/apt/lists/*' \
		--exclude='./var/cache/apt/*'
	groupadd -R "$root" -r kvpool
	useradd -R "$root" -m -u 1000 -s /bin/bash alice
	useradd -R "$root" -m -u 1001 -s /bin/bash bob
	usermod -R "$root" -aG kvpool alice
	mksquashfs "$root" "$3/rootfs.squashfs" -comp lzo -quiet -no-progress
	rm -rf "$root" "$tar"
}

if [ "${1-}" = --build ]; then
	shift
	build "$@"
	exit
fi
need mmdebstrap mksquashfs
suite=$1
shift
packages=$(printf '%s\n' "${base_packages[@]}" "$@" | LC_ALL=C sort -u | paste -sd,)
key=$( { echo "$suite" "$packages"; cat "$vm_dir/rootfs.sh"; } | hash_of)
cached "rootfs-$suite-$key" "$0" --build "$suite" "$packages"
