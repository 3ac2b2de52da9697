#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# initrd.sh KERNEL-FOLDER: print a folder with initrd.img: busybox, the modules
# that the tests need with all they depend on, and the first init.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need cpio gzip modprobe depmod

kernel=$1
release=$(cat "$kernel/release")
busybox=$(command -v busybox) || fail "busybox is not installed" "run tests/install-deps"

# Those before the line are loaded by the first init, in this order.
boot_modules=(virtio_pci virtio_blk squashfs overlay)
later_modules=(ib_uverbs rdma_rxe rdma_ucm crc32_generic dummy veth ib_uverbs_support
	nfnetlink tun)

# shellcheck disable=SC2317
build() {
	local root=$1/root module file
	mkdir -p "$root"/{bin,dev,proc,sys,new,ro,rw,lower} "$root/lib/modules/$release"
	cp "$busybox" "$root/bin/busybox"
	cp "$kernel/modules/$release"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$release/"
	mkdir "$1/base"
	mkdir -p "$1/base/lib"
	ln -s "$kernel/modules" "$1/base/lib/modules"
	for module in "${boot_modules[@]}" "${later_modules[@]}"; do
		# A name that this kernel has not, or has built in, gives no file.
		modprobe -d "$1/base" -S "$release" --show-depends "$module" 2>/dev/null || true
	done | awk '$1 == "insmod" { print $2 }' | awk '!seen[$0]++' >"$1/files"
	while read -r file; do
		file=${file#"$1/base"}
		mkdir -p "$root$(dirname "$file")"
		cp "$kernel${file#/lib}" "$root$file"
	done <"$1/files"
	depmod -b "$root" "$release"
	echo "${boot_modules[@]}" >"$root/boot-modules"
	install -m 755 "$vm_dir/init" "$root/init"
	(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$1/initrd.img"
	rm -rf "$root" "$1/base" "$1/files"
}
key=$( { cat "$vm_dir/initrd.sh" "$vm_dir/init" "$kernel/release"; basename "$kernel"; } | hash_of)
cached "initrd-$key" build
