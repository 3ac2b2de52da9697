#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2046 # flags are words
# What `make install` leaves is enough to build programs with, in C and C++,
# shared and static, and nothing but what the map names is exported.
cd "$(dirname "$0")/../.." || exit 1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

verdict() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$root/log" 2>&1; then
		echo "ok - test_install: $name"
	else
		echo "not ok - test_install: $name: $(tail -n 3 "$root/log" | tr '\n' ' ')"
		failed=1
	fi
}

config() { PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root/usr/lib/pkgconfig pkg-config "$@"; }

# One use of every function of the header, so that each must link.
every_function() {
	echo '#include <kvpool.h>'
	echo 'typedef void (*any)(void);'
	echo 'any all[] = {'
	exported | sed 's/.*/(any)&,/'
	echo '};'
	echo 'int main(void) { struct kvp_options o = KVP_INIT(struct kvp_options); return o.struct_size && all[0] ? 0 : 1; }'
}

exported() {
	nm -D --defined-only "$root/usr/lib/libkvpool.so.0" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }'
}

# The compiler's own view of the header, without its comments.
declared() {
	gcc -E -P -x c lib/kvpool.h | tr '\n' ' ' | tr ';{}' '\n\n\n' |
		grep -oE '\bkvp_[a-z_]+ ?\(' | tr -d ' ('
}

same_functions() {
	diff <(exported | sort) <(declared | sort)
}

compile() { # COMPILER OUTPUT FLAG...: of every_function, by pkg-config
	local compiler=$1 output=$2
	shift 2
	"$compiler" -Wall -Wextra -Werror -Wno-cast-function-type $(config --cflags libkvpool) -o "$root/$output" "$@"
}

verdict "make install" make -s install DESTDIR="$root"
every_function >"$root/every.c"
cp "$root/every.c" "$root/every.cc"
verdict "header and library name the same functions" same_functions
verdict "a C program links shared" compile gcc shared "$root/every.c" $(config --libs libkvpool)
verdict "and runs" env LD_LIBRARY_PATH="$root/usr/lib" "$root/shared"
verdict "a C++ program links shared" compile g++ shared++ "$root/every.cc" $(config --libs libkvpool)
verdict "a C program links static" compile gcc static "$root/every.c" "$root/usr/lib/libkvpool.a" \
	$(config --static --libs libkvpool | tr ' ' '\n' | grep -v '^-lkvpool$')
verdict "and runs without the shared library" "$root/static"
verdict "the tool runs" env LD_LIBRARY_PATH="$root/usr/lib" "$root/usr/bin/kvpoolctl" --version
exit $failed
