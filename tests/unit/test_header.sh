#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The public header compiles alone, in C and C++, and header, symbol map and
# what the library really exports are the same functions.
: "${CC:=cc}" "${CXX:=c++}"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
warn="-Wall -Wextra -Werror -pedantic"
failed=0

case_of() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >"$dir/log" 2>&1; then
		echo "ok - header: $name"
	else
		echo "not ok - header: $name"
		sed 's/^/  /' "$dir/log"
		failed=1
	fi
}

same() { # FILE FILE: two sorted lists, not empty
	[ -s "$1" ] && diff "$1" "$2"
}

# KVP_INIT() is expanded too: it differs between the languages.
cat >"$dir/alone.c" <<'END'
#include "kvpool.h"
int main(void)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_pool_options pool = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_registrar_ops ops = KVP_INIT(struct kvp_registrar_ops);
	struct kvp_transaction_options transaction = KVP_INIT(struct kvp_transaction_options);

	return options.read_only || pool.length || change.mask || ops.pins ||
	       transaction.struct_size != sizeof(transaction) || KVP_BLOCK_SIZE != 2097152;
}
END
cp "$dir/alone.c" "$dir/alone.cc"
cat >"$dir/twice.c" <<'END'
#include "kvpool.h"
#include "kvpool.h"
int main(void) { return 0; }
END

compile_and_run() { # COMPILER STANDARD SOURCE
	# shellcheck disable=SC2086
	"$1" "-std=$2" $warn -Ilib "$dir/$3" -o "$dir/alone" && "$dir/alone"
}

case_of "compiles alone as C11" compile_and_run "$CC" c11 alone.c
case_of "compiles alone as C++17" compile_and_run "$CXX" c++17 alone.cc
case_of "may be included twice" compile_and_run "$CC" c11 twice.c

# What the compiler sees, so that comments and line breaks do not matter.
"$CC" -E -P -Ilib lib/kvpool.h | tr -s '\n\t ' ' ' | tr ';{}' '\n' |
	sed -n 's/^[^(]*[ *]\(kvp_[a-z_0-9]*\)(.*/\1/p' | sort -u >"$dir/header"
sed -n 's/^[[:space:]]*\(kvp_[a-z_0-9]*\);$/\1/p' lib/kvpool.map | sort >"$dir/map"

link_library() { # FILE OPTION...
	file=$1
	shift
	"$CC" -std=gnu11 -fvisibility=hidden -fPIC -shared -pthread "$@" -o "$file" lib/*.c \
		-libverbs -lmnl
}

exported() { # FILE
	nm -D --defined-only "$1" | sed -n 's/.* [TDBR] \([a-z_0-9]*\).*/\1/p' | sort
}

case_of "map names the functions of the header" same "$dir/header" "$dir/map"
case_of "library links without the map" link_library "$dir/plain.so"
exported "$dir/plain.so" >"$dir/exported"
case_of "KVP_EXPORT marks the functions of the header" same "$dir/header" "$dir/exported"
case_of "library links with the map" link_library "$dir/mapped.so" -Wl,-z,defs \
	-Wl,--version-script=lib/kvpool.map
exported "$dir/mapped.so" >"$dir/exported"
case_of "library exports the functions of the header" same "$dir/header" "$dir/exported"
case_of "every function carries the version KVPOOL_0.1" sh -c \
	"nm -D --with-symbol-versions --defined-only '$dir/mapped.so' | grep ' T ' >'$dir/versions' &&
	! grep -v '@@KVPOOL_0.1$' '$dir/versions'"


# A store is exported, whatever the visibility of all else.
cat >"$dir/store.c" <<'END'
#include "kvpool_store.h"
#ifdef __cplusplus
extern "C" {
#endif
const struct kvp_store kvp_store = { KVP_STORE_VERSION, 0, "store", 0, 0, 0, 0, 0, 0 };
#ifdef __cplusplus
}
#endif
END
cp "$dir/store.c" "$dir/store.cc"
store_is_exported() { # COMPILER STANDARD SOURCE
	# shellcheck disable=SC2086
	"$1" "-std=$2" $warn -Ilib -fvisibility=hidden -fPIC -shared "$dir/$3" -o "$dir/store.so" &&
		[ "$(exported "$dir/store.so")" = kvp_store ]
}
case_of "exports a store of C11" store_is_exported "$CC" c11 store.c
case_of "exports a store of C++17" store_is_exported "$CXX" c++17 store.cc

exit $failed
