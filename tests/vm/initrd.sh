#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# initrd.sh KERNEL-FOLDER: print a folder that holds
#   initrd.img   busybox, the first init and the modules that it needs
#   modules/     all modules that the tests need, with all they depend on
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# Loaded by the first init, in this order.
boot_modules=(virtio_pci virtio_blk squashfs overlay)
# A name that a kernel has not, or has built in, gives no file.
other_modules=(ib_uverbs ib_uverbs_support rdma_ucm rdma_cm rdma_rxe crc32_generic
	dummy veth tun nfnetlink hwpoison_inject psample)

# copy_modules KERNEL FOLDER NAME...: to FOLDER/RELEASE, with their dependencies.
copy_modules() {
	local kernel=$1 to=$2 base=$2/base release module file
	shift 2
	release=$(cat "$kernel/release")
	mkdir -p "$to/$release" "$base/lib"
	ln -s "$kernel/modules" "$base/lib/modules"
	cp "$kernel/modules/$release"/modules.{order,builtin,builtin.modinfo} "$to/$release/"
	for module; do
		modprobe -d "$base" -S "$release" --show-depends "$module" 2>/dev/null || true
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$to/files"
	while read -r file; do
		module=${file#"$base/lib/modules/"}
		mkdir -p "$to/$(dirname "$module")"
		# Plain files: busybox loads no others.
		case $file in
		*.xz) xz -dc "$file" >"$to/${module%.xz}" ;;
		*.zst) zstd -qdc "$file" >"$to/${module%.zst}" ;;
		*) cp "$file" "$to/$module" ;;
		esac
	done <"$to/files"
	rm -r "$base" "$to/files"
}

# build KERNEL FOLDER
build() {
	local kernel=$1 root=$2/root release
	release=$(cat "$kernel/release")
	mkdir -p "$root"/{bin,dev,proc,sys,new,ro,rw,lib/modules}
	cp "$(command -v busybox)" "$root/bin/busybox"
	copy_modules "$kernel" "$root/lib/modules" "${boot_modules[@]}"
	depmod -b "$root" "$release"
	echo "${boot_modules[@]}" >"$root/boot-modules"
	install -m 755 "$vm_dir/init" "$root/init"
	(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$2/initrd.img"
	rm -r "$root"
	copy_modules "$kernel" "$2/modules" "${boot_modules[@]}" "${other_modules[@]}"
}

if [ "${1-}" = --build ]; then
	shift
	build "$@"
	exit
fi
need busybox cpio gzip xz zstd modprobe depmod
kernel=$1
key=$( { cat "$vm_dir/initrd.sh" "$vm_dir/init"; basename "$kernel"; } | hash_of)
cached "initrd-$key" "$0" --build "$kernel"
