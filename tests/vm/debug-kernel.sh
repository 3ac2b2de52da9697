#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# debug-kernel.sh SUITE VERSION FOLDER: fill the folder as kernel.sh says, with a
# kernel that finds faults in kernel code: debug.config over Debian's source.
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"
suite=$1 version=$2
series=$(cut -d. -f1-2 <<<"$version")
cd "$3"

need apt-get dpkg-deb tar xz make gcc flex bison bc depmod cpio
apt-get -o APT::Sandbox::User=root download -qq "linux-source-$series=$version" ||
	fail "no package linux-source-$series $version" \
		"run tests/install-deps --update, which moves the headers on"
dpkg-deb -x ./linux-source-*.deb package
rm ./linux-source-*.deb
mkdir tree
tar -C tree --strip-components=1 -xf "package/usr/src/linux-source-$series.tar.xz"
rm -r package

cd tree
make -s allnoconfig "KCONFIG_ALLCONFIG=$vm_dir/debug.config"
# What a symbol depends on changes between releases, and takes it away in silence.
lost=$(grep '^CONFIG_' "$vm_dir/debug.config" | grep -vxFf .config | paste -sd' ' || true)
[ -z "$lost" ] || fail "not taken over: $lost" "add what they depend on to debug.config"
# What checks is not checked itself: it runs all the time.
for checker in lockdep spinlock_debug kmemleak debugobjects unwind_frame extable; do
	unchecked+=("KASAN_SANITIZE_$checker.o=n")
done
make -s "-j$(nproc)" "${unchecked[@]}" bzImage modules
make -s "${unchecked[@]}" INSTALL_MOD_PATH=.. modules_install
release=$(make -s kernelrelease)
mv arch/x86/boot/bzImage ../vmlinuz

# What a module is built against: the part that header packages have.
{
	find . -maxdepth 1 -name 'Makefile' -o -maxdepth 1 -name 'Kbuild'
	find include scripts arch/x86/include ! -type d
	find arch/x86 -name 'Makefile*'
	echo .config
	echo Module.symvers
	echo tools/objtool/objtool
} | cpio --quiet -pdm ../build
cd ..
rm -r tree
mv lib/modules modules
rmdir lib
rm -f "modules/$release"/{build,source}
echo "$release" >release
echo "$suite" >suite
