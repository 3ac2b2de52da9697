#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module by way of dkms, from installation to removal, as on a user's machine.
# Run by tests/dkms, in /root with the source and packages of headers of two kernels.
cd /root || exit 2
failed=0
release=$(uname -r)
export DEBIAN_FRONTEND=noninteractive

# verdict NAME COMMAND...: a case; the command says what is wrong.
verdict() {
	local name="dkms on ${release%-amd64}: $1" began=$SECONDS
	shift
	if "$@" >log 2>&1; then
		echo "ok - $name"
	else
		echo "not ok - $name: $(tail -n 25 log)"
		failed=1
	fi
	echo "# $((SECONDS - began)) s"
}

# is WANTED GOT WHAT
is() {
	[ "$1" = "$2" ] || { echo "$3 is '$2', not '$1'"; return 1; }
}

# make_source VERSION: the checkout, as that version.
make_source() {
	rm -rf source
	mkdir source
	tar -C source -xf source.tar
	sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$1\"/" source/dkms.conf
	sed -i "s/^MODULE_VERSION(.*/MODULE_VERSION(\"$1\");/" source/kmod/main.c
}

# headers N: install the packages of a kernel's headers. What they want beside is
# the kernel, which is there without its package.
headers() {
	mkdir -p "headers$1"
	tar -C "headers$1" -xf "headers$1.tar"
	dpkg --force-depends -i "headers$1"/*.deb
}

# installed VERSION RELEASE: dkms says so, and so does the module itself.
installed() {
	local file
	# Not by its name: for a kernel whose image is not there, dkms makes no index.
	file=$(echo "/lib/modules/$2/updates/dkms/kvpool.ko"*)
	is "$1" "$(modinfo -F version "$file")" "version of the module" || return
	[[ $(modinfo -F vermagic "$file") == "$2 "* ]] || { modinfo "$file"; return 1; }
	[ "$(dkms status -m kvpool -k "$2")" = "kvpool/$1, $2, x86_64: installed" ] || { dkms status; return 1; }
}

install_first() {
	make_source 0.1.0
	make -C source dkms-install && installed 0.1.0 "$release"
}

# By the key that dkms made for this machine.
signed() {
	local serial
	serial=$(openssl x509 -inform DER -in /var/lib/dkms/mok.pub -noout -serial)
	is "${serial#serial=}" "$(modinfo -F sig_key kvpool | tr -d :)" "key of the signature" &&
		is "$(openssl x509 -inform DER -in /var/lib/dkms/mok.pub -noout -subject -nameopt multiline |
			sed -n 's/^ *commonName *= //p')" "$(modinfo -F signer kvpool)" signer
}

main_job() {
	/usr/lib/kvpool/examples/quickstart | grep 'registered 67108864 bytes' &&
		/usr/lib/kvpool/tests/test_mapping
}

works() { # VERSION
	[[ $(modinfo -n kvpool) == "/lib/modules/$release/updates/dkms/kvpool.ko"* ]] || {
		echo "found is $(modinfo -n kvpool)"
		return 1
	}
	modprobe kvpool || return
	is "$1" "$(cat /sys/module/kvpool/version)" "version that is loaded" || return
	[[ $(cat /sys/module/kvpool/taint) =~ ^OE?$ ]] || { echo "taint $(cat /sys/module/kvpool/taint)"; return 1; }
	main_job || return
	rmmod kvpool
}

upgrade() {
	make_source 0.1.1
	make -C source dkms-install && installed 0.1.1 "$release" &&
		is "kvpool/0.1.1, $release, x86_64: installed" "$(dkms status)" "all that dkms has" &&
		is /usr/src/kvpool-0.1.1 "$(echo /usr/src/kvpool-*)" "all that is in /usr/src"
}

second_kernel() {
	headers 1 && installed 0.1.1 "$second" && installed 0.1.1 "$release"
}

# What it builds with, but for one option.
refused() {
	local option said other=${release%-amd64}-other config
	cp -rL "/lib/modules/$release/build" other
	config=$(cat other/.config)
	for option in CONFIG_NET CONFIG_DEVTMPFS CONFIG_TRANSPARENT_HUGEPAGE; do
		sed "/^$option=/d" <<<"$config" >other/.config
		if said=$(dkms build kvpool/0.1.1 -k "$other" --kernelsourcedir /root/other \
			--config /root/other/.config 2>&1); then
			echo "built without $option"
			return 1
		fi
		[[ $said == *"kvpool needs a kernel with $option=y"* ]] || { echo "$said"; return 1; }
	done
}

# Nothing but the key, which is the machine's.
remove() {
	local left
	make -C source dkms-remove || return
	left=$(dkms status; ls -d /var/lib/dkms/kvpool /usr/src/kvpool* 2>/dev/null; find /lib/modules/ -name 'kvpool*')
	is "" "$left" "what is left" || return
	! modprobe kvpool
}

# The guest comes with a module of its own.
rm -r "/lib/modules/$release/extra"
depmod
second=$(tar -tf headers1.tar | sed -n 's|^\./linux-headers-\(.*-amd64\)_.*|\1|p')
verdict "headers" headers 0
verdict "add, build, install" install_first
verdict "signed by the key of this machine's dkms" signed
verdict "loads, maps by 2 MiB, registers" works 0.1.0
verdict "upgrade" upgrade
verdict "the upgrade loads, maps by 2 MiB, registers" works 0.1.1
verdict "a kernel that comes later ($second)" second_kernel
verdict "a kernel without a needed option is refused by its name" refused
verdict "remove" remove
exit $failed
