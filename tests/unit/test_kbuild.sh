#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module says what it misses in a kernel's configuration, and versions agree.
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

result() { # NAME STATUS WHY
	if [ "$2" = 0 ]; then
		echo "ok - kbuild: $1"
	else
		echo "not ok - kbuild: $1: $3"
		failed=1
	fi
}

# shellcheck disable=SC2012
headers=$(ls -d /usr/src/linux-headers-*-amd64 | tail -n 1)
cp -r Kbuild kmod uapi "$work/"

# The same headers, but for one option.
without() { # OPTION
	rm -rf "$work/headers"
	cp -r "$headers" "$work/headers"
	sed -i "/^$1=/d" "$work/headers/.config" "$work/headers/include/config/auto.conf"
}

options=$(sed -n 's/^BUILD_EXCLUSIVE_CONFIG="\(.*\)"/\1/p' dkms.conf)
for option in $options; do
	without "$option"
	said=$(make -C "$work/headers" M="$work" modules 2>&1)
	[ $? != 0 ] && [[ $said == *"kvpool needs a kernel with $option=y"* ]]
	result "a kernel without $option is refused by name" $? "$(tail -n 2 <<<"$said")"

	# dkms reads its file so, with these two set.
	said=$(kernelver=6.1.0 kernel_config=$work/headers/.config bash -c '. ./dkms.conf' 2>&1)
	[ "$said" = "kvpool needs a kernel with $option=y, 6.1.0 is without" ]
	result "dkms.conf says so too for $option" $? "$said"
done

for kernelver in 5.10.0-1 6.0.19 6.1.0-57-amd64 6.12.1+deb13-amd64 7.3.4 10.0; do
	said=$(kernelver=$kernelver bash -c '. ./dkms.conf' 2>&1)
	case $kernelver in
	5.* | 6.0.*) [ "$said" = "kvpool needs a kernel from 6.1 on, $kernelver is older" ] ;;
	*) [ -z "$said" ] ;;
	esac
	result "dkms.conf on kernel $kernelver" $? "$said"
done

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
[ -n "$version" ] && grep -qx "MODULE_VERSION(\"$version\");" kmod/main.c
result "module and dkms.conf have the same version" $? "dkms.conf has '$version'"
exit $failed
