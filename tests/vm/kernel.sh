#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernel.sh NAME: print a folder that holds, for one kernel line,
#   vmlinuz   the image
#   release   its release, as uname -r says it
#   build     link to what modules are built against
#   modules/  lib/modules of the kernel
#   suite     Debian suite that fits it
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# From the packages of this machine's own release.
stock() {
	local package release version
	need dpkg-deb apt-get
	package=$(dpkg-query -f '${Depends}' -W linux-headers-amd64 2>/dev/null) ||
		fail "linux-headers-amd64 is not installed" "run tests/install-deps"
	release=${package#linux-headers-}
	release=${release%% *}
	version=$(dpkg-query -f '${Version}' -W "linux-headers-$release")
	[ -d "/lib/modules/$release/build" ] || [ -d "/usr/src/linux-headers-$release" ] ||
		fail "no headers for $release" "run tests/install-deps"

	# shellcheck disable=SC2317
	build() {
		cd "$1"
		apt-get -o APT::Sandbox::User=root download -qq "linux-image-$release=$version"
		dpkg-deb -x ./linux-image-*.deb image
		mv "image/boot/vmlinuz-$release" vmlinuz
		# The package makes the list of dependencies when it is installed.
		depmod -b image "$release"
		mv image/lib/modules modules
		rm -rf image ./*.deb
		echo "$release" >release
		. /etc/os-release
		echo "$VERSION_CODENAME" >suite
		ln -s "/usr/src/linux-headers-$release" build
	}
	cached "kernel-$release-$version" build
}

case ${1-} in
6.1) stock ;;
*) fail "unknown kernel '${1-}'" "known: 6.1" ;;
esac
