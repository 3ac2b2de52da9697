#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernel.sh NAME: print a folder that holds, for one kernel line,
#   vmlinuz   the image
#   release   its release, as uname -r says it
#   build     what modules are built against, or a link to it
#   arm64     the same for arm64; not of the debug kernel
#   modules/  lib/modules of the kernel
#   suite     Debian suite that fits it
#   toolchain link to the folder of toolchain.sh, in whose root `build` is to be
#             read; not there when this machine's own compiler builds for it
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# fetch SUITE RELEASE VERSION FOLDER: fill the folder from a stock package.
fetch() {
	local suite=$1 release=$2 version=$3
	cd "$4"
	apt-get -o APT::Sandbox::User=root download -qq "linux-image-$release=$version" ||
		fail "no package linux-image-$release $version" \
			"run tests/install-deps --update, which moves the headers on"
	dpkg-deb -x ./linux-image-*.deb image
	mv "image/boot/vmlinuz-$release" vmlinuz
	# The package makes the list of dependencies when it is installed.
	depmod -b image "$release"
	mv image/lib/modules modules
	rm -rf image ./*.deb
	arm64_headers "${release%amd64}arm64" "$version"
	echo "$release" >release
	echo "$suite" >suite
	ln -s "/usr/src/linux-headers-$release" build
}

# arm64_headers RELEASE VERSION: have them in this folder. The machine's apt knows its
# own architecture only, so this one has lists of its own.
arm64_headers() {
	local own=(-o APT::Architectures::=arm64 -o APT::Sandbox::User=root -o Dir::State="$PWD/apt"
		-o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$PWD/apt")
	mkdir -p apt/lists/partial apt/archives/partial
	# As in install-deps: a list of a third party may be out of reach.
	apt-get "${own[@]}" -qq update || true
	apt-get "${own[@]}" download -qq "linux-headers-$1:arm64=$2" ||
		fail "no package linux-headers-$1 $2" "run tests/install-deps --update, which moves the headers on"
	dpkg-deb -x ./linux-headers-*.deb headers
	# Scripts and tools are this machine's own.
	ln -s /usr/lib headers/usr/lib
	ln -s "headers/usr/src/linux-headers-$1" arm64
	rm -r apt ./*.deb
}

# stock SUITE LINE: the kernel of the headers that this machine has installed.
stock() {
	local suite=$1 line=$2 package release version
	need dpkg-deb apt-get depmod
	package=$(dpkg-query -f '${Depends}' -W linux-headers-amd64 2>/dev/null) ||
		fail "linux-headers-amd64 is not installed" "run tests/install-deps"
	release=${package#linux-headers-}
	release=${release%% *}
	[[ $release == "$line".* ]] ||
		fail "this machine's headers are $release" "kernel $line needs Debian $suite"
	[ -d "/usr/src/linux-headers-$release" ] ||
		fail "no headers for $release" "run tests/install-deps"
	version=$(dpkg-query -f '${Version}' -W "linux-headers-$release")
	cached "kernel-$release-$version-$(hash_of <"$0")" "$0" --fetch "$suite" "$release" "$version"
}

# link TOOLCHAIN SUITE RELEASE FOLDER: fill the folder from a toolchain.
link() {
	local toolchain=$1 suite=$2 release=$3
	cd "$4"
	ln -s "$toolchain" toolchain
	ln -s "$toolchain/root/boot/vmlinuz-$release" vmlinuz
	ln -s "$toolchain/root/lib/modules" modules
	ln -s "/usr/src/linux-headers-$release" build
	ln -s "/usr/src/linux-headers-${release%amd64}arm64" arm64
	echo "$release" >release
	echo "$suite" >suite
}

# foreign SUITE LINE: a kernel of another suite than this machine's.
foreign() {
	local suite=$1 line=$2 toolchain release
	toolchain=$("$vm_dir/toolchain.sh" "$suite")
	release=$(cd "$toolchain/root/lib/modules" && echo "$line".*)
	[ -f "$toolchain/root/boot/vmlinuz-$release" ] ||
		fail "$suite and its backports have no kernel $line" "they have: $(
			cd "$toolchain/root/lib/modules" && echo *)"
	cached "kernel-$release-${toolchain##*-}-$(hash_of <"$0")" "$0" --link "$toolchain" "$suite" "$release"
}

# debug SUITE: from the source of the headers that this machine has installed.
debug() {
	local version key
	version=$(dpkg-query -f '${Version}' -W linux-headers-amd64 2>/dev/null) ||
		fail "linux-headers-amd64 is not installed" "run tests/install-deps"
	key=$(cat "$vm_dir"/debug{.config,-kernel.sh} | hash_of)
	# Eight minutes on two processors that do nothing else.
	build_limit=3600 cached "debug-$version-$key" "$vm_dir/debug-kernel.sh" "$1" "$version"
}

case ${1-} in
--fetch) shift; fetch "$@" ;;
--link) shift; link "$@" ;;
6.1) stock bookworm 6.1 ;;
6.12 | 7.3) foreign trixie "$1" ;;
debug) debug bookworm ;;
*) fail "unknown kernel '${1-}'" "known: 6.1, 6.12, 7.3, debug" ;;
esac
