#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# toolchain.sh SUITE: print a folder that holds
#   root/   a Debian of that suite with its compiler, what library and module are
#           built against, and two kernels with their headers: the suite's own and
#           the newest of its backports; for arm64 a cross compiler and the headers
#   debs/   packages of the headers, amd64, a folder a kernel
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

packages=(gcc g++ make perl pkg-config libc6-dev libelf-dev sparse gcc-aarch64-linux-gnu
	libibverbs-dev libmnl-dev libjson-c-dev libxxhash-dev linux-headers-amd64)

# What runs in the new root. The newer packages are named by what the dummy
# package depends on, so that nothing else of the backports comes in.
kernels() {
	cat <<'END'
set -e
export DEBIAN_FRONTEND=noninteractive
suite=$1
new=$(apt-cache show "linux-headers-amd64/$suite-backports" |
	sed -n 's/^Depends:.* linux-headers-\([^ ]*\)-amd64 .*/\1/p')
apt-get install -qq -y --no-install-recommends "linux-headers-$new-amd64" \
	"linux-image-$new-amd64" "linux-base/$suite-backports" >/dev/null
for headers in /usr/src/linux-headers-*-amd64; do
	version=${headers#/usr/src/linux-headers-}
	version=${version%-amd64}
	mkdir -p "/debs/$version-amd64"
	cd "/debs/$version-amd64"
	apt-get -o APT::Sandbox::User=root download -qq "linux-headers-$version-amd64" \
		"linux-headers-$version-common" "linux-kbuild-$version"
	# Unpacked only: it wants a compiler that runs on arm64.
	cd /tmp
	apt-get -o APT::Sandbox::User=root download -qq "linux-headers-$version-arm64:arm64"
	dpkg-deb -x ./*.deb unpacked
	mv unpacked/usr/src/* /usr/src
	rm -r unpacked ./*.deb
done
END
}

# build SUITE FOLDER
build() {
	local suite=$1 root=$2/root from
	from=$(debian_mirror)
	kernels >"$2/hook"
	# No initial RAM disk of these kernels is wanted.
	INITRD=No mmdebstrap --quiet --variant=apt --architectures=amd64,arm64 \
		--include="$(IFS=,; echo "${packages[*]}")" --aptopt='Acquire::Languages "none"' \
		--dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-exclude='/usr/share/man/*' \
		--dpkgopt=path-exclude='/usr/share/locale/*' \
		--customize-hook="chroot \"\$1\" sh -c \"\$(cat '$2/hook')\" sh $suite" \
		"$suite" "$2/root.tar" \
		"deb $from $suite main" "deb $from $suite-backports main"
	# By way of an archive, as in rootfs.sh.
	mkdir "$root"
	tar -C "$root" -xf "$2/root.tar" --exclude='./dev/*' --exclude='./var/lib/apt/lists/*' \
		--exclude='./var/cache/apt/*'
	mv "$root/debs" "$2/debs"
	# Where in_toolchain() mounts.
	mkdir "$root/source" "$root/output"
	rm "$2/root.tar" "$2/hook"
}

if [ "${1-}" = --build ]; then
	shift
	build "$@"
	exit
fi
need mmdebstrap unshare
key=$( { echo "$1"; cat "$vm_dir/toolchain.sh"; } | hash_of)
# Four minutes on two processors that do nothing else.
build_limit=3600 cached "toolchain-$1-$key" "$0" --build "$1"
