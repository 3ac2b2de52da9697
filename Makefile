# SPDX-License-Identifier: GPL-2.0
# What people type. Kbuild is what the kernel's build reads.
#
#   make            module, library, tool; KVPOOL_KUNIT=1: module with its KUnit suites
#   make test       every test, on the host and in guests (as root);
#                   KERNELS='6.12 ...': on these kernel lines; 6.1 and debug otherwise
#   make demo       the whole story in a guest       (as root)
#   make test-matrix  make test on every kernel line (as root)
#   make test-dkms  the module by way of dkms, in a guest of each release (as root)
#   make check      static checks
#   make fuzz       fuzz what takes data from outside, FUZZ_TIME seconds a target
#   make bench      benchmarks in a guest (as root); BENCH_ICOUNT=1: times repeat
#   make install    library, header, tool, manuals; DESTDIR, PREFIX
#   make dkms-install, dkms-remove  module by dkms, for this and later kernels (as root)
#   make install-module             module for this kernel only

VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib
KDIR ?= /lib/modules/$(shell uname -r)/build
BUILD := build

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes
LIB_CFLAGS := -std=gnu11 $(WARN) -fvisibility=hidden -fPIC -pthread
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

LIB_SRC := $(wildcard lib/*.c)
LIB_OBJ := $(LIB_SRC:lib/%.c=$(BUILD)/lib/%.o)
LIB_HDR := $(wildcard lib/*.h uapi/*.h)
TOOL_SRC := $(wildcard tools/*.c)
TOOL_OBJ := $(TOOL_SRC:tools/%.c=$(BUILD)/tools/%.o)
GUEST_SRC := $(wildcard tests/guest/test_*.c)
GUEST_BIN := $(GUEST_SRC:tests/guest/%.c=$(BUILD)/guest/%)
GUEST_SUPPORT := $(filter-out $(GUEST_SRC),$(wildcard tests/guest/*.c))
BENCH_SRC := $(wildcard tests/bench/bench_*.c)
BENCH_SUPPORT := $(filter-out $(BENCH_SRC),$(wildcard tests/bench/*.c))
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(BUILD)/bench/%)
GUEST_STORE := $(BUILD)/guest/store $(BUILD)/guest/store.so $(BUILD)/guest/store_batch.so
DEMO_SUPPORT := $(wildcard examples/lib*.c)
DEMO_SRC := $(filter-out $(DEMO_SUPPORT),$(wildcard examples/*.c))
DEMO_BIN := $(DEMO_SRC:examples/%.c=$(BUILD)/examples/%)

SO := $(BUILD)/libkvpool.so.0
LIB := $(SO) $(BUILD)/libkvpool.so $(BUILD)/libkvpool.a $(BUILD)/libkvpool.pc
TOOL := $(BUILD)/kvpoolctl

.PHONY: all module lib tools unit-tests guest-tests guest-module examples test test-matrix test-dkms \
	demo check fuzz fuzz-tests bench clean install install-guest install-module dkms-install dkms-remove
.DELETE_ON_ERROR:

all: module lib tools

# A copy for each kernel, so that objects of two kernels never mix.
KRELEASE := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h 2>/dev/null)
KBUILD_DIR = $(BUILD)/kmod-$(KRELEASE)$(if $(KVPOOL_KUNIT),-kunit)
module:
	@test -n "$(KRELEASE)" || { echo "no kernel headers in $(KDIR): install the package" \
		"linux-headers of the kernel, or set KDIR" >&2; exit 1; }
	@mkdir -p $(KBUILD_DIR)
	@cp -ru Kbuild kmod uapi $(KBUILD_DIR)/
	$(MAKE) -C $(KDIR) M=$(CURDIR)/$(KBUILD_DIR) W=1 modules

lib: $(LIB)
tools: $(TOOL)

$(BUILD)/lib/%.o: lib/%.c $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -c -o $@ $<

$(SO): $(LIB_OBJ) lib/kvpool.map
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,libkvpool.so.0 -Wl,-z,defs \
		-Wl,--version-script=lib/kvpool.map -o $@ $(LIB_OBJ) -libverbs -lmnl

$(BUILD)/libkvpool.so: $(SO)
	ln -sf libkvpool.so.0 $@

$(BUILD)/libkvpool.a: $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libkvpool.pc: lib/kvpool.pc.in
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@VERSION@|$(VERSION)|g' $< >$@

$(BUILD)/tools/%.o: tools/%.c $(wildcard tools/*.h) lib/kvpool.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 $(WARN) -DKVPOOL_VERSION='"$(VERSION)"' -Ilib -c -o $@ $<

$(TOOL): $(TOOL_OBJ) $(SO) $(BUILD)/libkvpool.so
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(TOOL_OBJ) -L$(BUILD) -lkvpool -ljson-c

# Programs that run in the guest, and the demo's.
GUEST_HDR := $(wildcard tests/guest/*.h tests/guest/store/*.h lib/kvpool*.h uapi/*.h)
GUEST_OBJ := $(GUEST_SUPPORT:tests/guest/%.c=$(BUILD)/guest/%.o)
$(BUILD)/guest/%.o: tests/guest/%.c $(GUEST_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) -pthread -Ilib -Iuapi -c -o $@ $<

.SECONDARY: $(GUEST_SRC:tests/guest/%.c=$(BUILD)/guest/%.o)
$(BUILD)/guest/%: $(BUILD)/guest/%.o $(GUEST_OBJ) $(SO) $(BUILD)/libkvpool.so
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $< $(GUEST_OBJ) $(GUEST_LIB) -libverbs -lmnl
GUEST_LIB = -L$(BUILD) -lkvpool
# Dies with records of the journal: what writes them has to be at hand.
$(BUILD)/guest/test_matrix_death: GUEST_LIB = -Wl,--wrap=kvp_log_append $(BUILD)/libkvpool.a
$(BUILD)/guest/test_matrix_death: $(BUILD)/libkvpool.a

# The store of the tests: a process of its own, and what is loaded to reach it.
$(BUILD)/guest/store: tests/guest/store/server.c tests/guest/store/protocol.h $(SO) $(BUILD)/libkvpool.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) -Ilib -o $@ $< -L$(BUILD) -lkvpool

$(BUILD)/guest/store.so $(BUILD)/guest/store_batch.so: tests/guest/store/plugin.c \
		tests/guest/store/protocol.h lib/kvpool.h lib/kvpool_store.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) -fPIC -shared \
		$(if $(findstring batch,$@),-DSTORE_BATCH) -Ilib -o $@ $<

$(BUILD)/examples/%: examples/%.c $(DEMO_SUPPORT) $(wildcard examples/*.h) $(SO) $(BUILD)/libkvpool.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 $(WARN) -pthread -Ilib -o $@ $< $(DEMO_SUPPORT) \
		-L$(BUILD) -lkvpool -libverbs

$(BUILD)/bench/%: tests/bench/%.c $(BENCH_SUPPORT) $(wildcard tests/bench/*.h) $(GUEST_HDR) \
		$(GUEST_OBJ) $(SO) $(BUILD)/libkvpool.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) -pthread -Ilib -Iuapi -o $@ $< \
		$(BENCH_SUPPORT) $(GUEST_OBJ) $(BENCH_LIB) -libverbs -lmnl
BENCH_LIB = -L$(BUILD) -lkvpool
# Goes behind the library's functions: there is no kernel on the host.
$(BUILD)/bench/bench_membership: BENCH_LIB = $(BUILD)/libkvpool.a
$(BUILD)/bench/bench_membership: $(BUILD)/libkvpool.a

guest-tests: $(GUEST_BIN) $(GUEST_STORE) $(BENCH_BIN) examples
examples: $(DEMO_BIN)

# Unit tests: the library and the tool with sanitizers, the kernel and verbs
# replaced by scripted stand-ins. No root, no module.
include tests/unit/unit.mk tests/unit/ctl.mk
UNIT_SUPPORT := $(wildcard tests/unit/fake_*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
UNIT_OBJ := $(patsubst %.c,$(BUILD)/unit/%.o,$(LIB_SRC) $(UNIT_SUPPORT) $(TOOL_SRC))
# A stand-in defines __wrap_open() and the like, which nothing declares.
UNIT_CFLAGS := -std=gnu11 $(WARN) -Wno-missing-prototypes -O1 -g $(SANITIZE) -pthread -Ilib -Itools -Itests/unit \
	-DKVPOOL_VERSION='"$(VERSION)"'

$(BUILD)/unit/%.o: %.c $(LIB_HDR) $(wildcard lib/*.h tools/*.h tests/unit/*.h)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -c -o $@ $<

$(BUILD)/unit/test_%: $(BUILD)/unit/tests/unit/test_%.o $(UNIT_OBJ)
	$(CC) $(SANITIZE) -pthread -o $@ $< \
		$(patsubst %.c,$(BUILD)/unit/%.o,$(LIB_SRC) $(UNIT_SUPPORT) $(UNIT_EXTRA_test_$*)) \
		$(UNIT_WRAPS) -lcmocka -lmnl -libverbs $(UNIT_LIBS_test_$*)

# Shared objects that test_load loads, each another kind; they show no more than they must.
UNIT_LOADED := $(patsubst %,$(BUILD)/unit/loaded_%.so,store batch none newer half nameless)
$(BUILD)/unit/loaded_%.so: tests/unit/loaded_store.c lib/kvpool_store.h lib/kvpool.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARN) -Wno-unused-function -fPIC -fvisibility=hidden -shared \
		-DLOADED_$* -o $@ $<

unit-tests: $(UNIT_BIN) $(UNIT_LOADED)

include tests/fuzz/fuzz.mk

test:
	tests/run $(KERNELS)

test-matrix:
	tests/run 6.1 debug 6.12 7.3

test-dkms:
	tests/dkms

demo:
	tests/demo

check:
	tests/check

bench:
	tests/bench/run

install: lib tools
	install -D -m 755 $(SO) $(DESTDIR)$(LIBDIR)/libkvpool.so.0
	ln -sf libkvpool.so.0 $(DESTDIR)$(LIBDIR)/libkvpool.so
	install -D -m 644 $(BUILD)/libkvpool.a $(DESTDIR)$(LIBDIR)/libkvpool.a
	install -D -m 644 $(BUILD)/libkvpool.pc $(DESTDIR)$(LIBDIR)/pkgconfig/libkvpool.pc
	install -D -m 644 lib/kvpool.h $(DESTDIR)$(PREFIX)/include/kvpool.h
	install -D -m 644 lib/kvpool_store.h $(DESTDIR)$(PREFIX)/include/kvpool_store.h
	install -D -m 644 uapi/kvpool.h $(DESTDIR)$(PREFIX)/include/linux/kvpool.h
	install -D -m 644 uapi/kvpool_netlink.h $(DESTDIR)$(PREFIX)/include/linux/kvpool_netlink.h
	install -D -m 755 $(TOOL) $(DESTDIR)$(PREFIX)/bin/kvpoolctl
	install -D -m 644 tools/60-kvpool.rules $(DESTDIR)/usr/lib/udev/rules.d/60-kvpool.rules
	install -D -m 644 docs/kvpoolctl.8 $(DESTDIR)$(PREFIX)/share/man/man8/kvpoolctl.8
	install -D -m 644 docs/kvpool.4 $(DESTDIR)$(PREFIX)/share/man/man4/kvpool.4
	install -D -m 644 tools/kvpoolctl.bash-completion \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kvpoolctl

install-module: module
	install -D -m 644 $(KBUILD_DIR)/kvpool.ko \
		$(DESTDIR)/lib/modules/$(KRELEASE)/extra/kvpool.ko

# For this kernel, and for those that an older version is installed for; then
# the older versions go.
DKMS_SOURCE := /usr/src/kvpool-$(VERSION)
dkms-versions = dkms status -m kvpool | sed -n 's|^kvpool/\([^,:]*\).*|\1|p' | sort -u
dkms-install:
	@! $(dkms-versions) | grep -qx '$(VERSION)' || dkms remove kvpool/$(VERSION) --all
	rm -rf $(DKMS_SOURCE)
	install -d $(DKMS_SOURCE)/uapi
	cp -r Kbuild dkms.conf kmod $(DKMS_SOURCE)/
	cp uapi/*.h $(DKMS_SOURCE)/uapi/
	dkms add kvpool/$(VERSION)
	@set -e; for kernel in $$( \
		{ uname -r; dkms status -m kvpool | sed -n 's|^kvpool/[^,]*, \([^,]*\),.*installed.*|\1|p'; } | \
		sort -u); do dkms install kvpool/$(VERSION) -k $$kernel; done
	@set -e; for version in $$($(dkms-versions) | grep -vx '$(VERSION)'); do \
		dkms remove kvpool/$$version --all; rm -rf /usr/src/kvpool-$$version; done

dkms-remove:
	@set -e; for version in $$($(dkms-versions)); do \
		dkms remove kvpool/$$version --all; rm -rf /usr/src/kvpool-$$version; done

# A module that guest tests use.
GUEST_KBUILD_DIR = $(BUILD)/guest-kmod-$(KRELEASE)
guest-module: module
	@mkdir -p $(GUEST_KBUILD_DIR)
	@cp -u tests/guest/kmod/* $(GUEST_KBUILD_DIR)/
	$(MAKE) -C $(KDIR) M=$(CURDIR)/$(GUEST_KBUILD_DIR) W=1 modules

# On a kernel that has KUnit, also a module with the suites.
install-guest: module guest-module install guest-tests
	! grep -qx CONFIG_KUNIT=y $(KDIR)/include/config/auto.conf || { \
		$(MAKE) module KVPOOL_KUNIT=1 && \
		install -D -m 644 $(KBUILD_DIR)-kunit/kvpool.ko $(DESTDIR)/usr/lib/kvpool/kunit/kvpool.ko; }
	install -D -m 644 $(KBUILD_DIR)/kvpool.ko \
		$(DESTDIR)/usr/lib/modules/$(KRELEASE)/extra/kvpool.ko
	install -d $(addprefix $(DESTDIR)/usr/lib/kvpool/,tests bench examples)
	install -m 755 $(BENCH_BIN) $(DESTDIR)/usr/lib/kvpool/bench/
	install -m 644 $(GUEST_KBUILD_DIR)/fail_call.ko $(DESTDIR)/usr/lib/kvpool/tests/
	install -m 755 $(GUEST_BIN) $(GUEST_STORE) $(wildcard tests/guest/*.sh) tests/guest/run-all $(DESTDIR)/usr/lib/kvpool/tests/
	install -m 755 $(DEMO_BIN) $(wildcard examples/*.sh) $(DESTDIR)/usr/lib/kvpool/examples/

clean:
	rm -rf $(BUILD)
