# Fuzz targets: the library with sanitizers and libFuzzer, and the stand-ins of
# the unit tests. `make fuzz` runs each for FUZZ_TIME seconds, starting from
# tests/fuzz/corpus, and leaves what it finds below build/fuzz.
FUZZ_CC ?= clang
FUZZ_TIME ?= 60
FUZZ_TARGETS := journals texts answers
FUZZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_CFLAGS := -std=gnu11 $(WARN) -Wno-missing-prototypes -O1 -g $(FUZZ_SANITIZE) -pthread \
	-Ilib -Itools -Itests/unit -DKVPOOL_VERSION='"$(VERSION)"'
# What is fuzzed says where it has been; the stand-ins don't.
$(BUILD)/fuzz/obj/lib/% $(BUILD)/fuzz/obj/tools/%: FUZZ_COVER := -fsanitize=fuzzer-no-link
FUZZ_BIN := $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)

# What each needs beside the library.
FUZZ_FORMAT := tools/json.c tools/format.c $(patsubst %,tools/format_%.c,pool stats event span)
FUZZ_SRC_journals := tests/fuzz/model.c tests/fuzz/mutate.c tools/format.c tools/format_journal.c \
	tools/json.c \
	$(wildcard tests/unit/fake_*.c)
FUZZ_WRAPPED_journals := $(UNIT_WRAPPED) kvp_process_look kvp_process_self
FUZZ_SRC_texts := tools/parse.c tools/maps.c $(FUZZ_FORMAT)
FUZZ_WRAPPED_texts := open open64
FUZZ_SRC_answers := $(FUZZ_FORMAT)
FUZZ_WRAPPED_answers := open open64 ioctl mmap mmap64 mnl_socket_open2 mnl_socket_bind \
	mnl_socket_close mnl_socket_get_fd mnl_socket_get_portid mnl_socket_sendto \
	mnl_socket_recvfrom mnl_socket_setsockopt

$(BUILD)/fuzz/obj/%.o: %.c $(LIB_HDR) $(wildcard tools/*.h tests/unit/*.h tests/fuzz/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) $(FUZZ_COVER) -c -o $@ $<

.SECONDEXPANSION:
$(FUZZ_BIN): $(BUILD)/fuzz/%: $$(patsubst %.c,$(BUILD)/fuzz/obj/%.o,tests/fuzz/fuzz_$$*.c \
		tests/fuzz/fuzz.c $(LIB_SRC) $$(FUZZ_SRC_$$*))
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_SANITIZE) -fsanitize=fuzzer -pthread -o $@ $^ \
		$(FUZZ_WRAPPED_$*:%=-Wl,--wrap=%) -lcmocka -lmnl -libverbs -ljson-c

# Writes what the corpora of journals and answers start from.
$(BUILD)/fuzz/seeds: $(patsubst %.c,$(BUILD)/unit/%.o,tests/fuzz/seeds.c $(LIB_SRC) $(UNIT_SUPPORT))
	@mkdir -p $(@D)
	$(CC) $(SANITIZE) -pthread -o $@ $^ $(UNIT_WRAPS) -Wl,--wrap=kvp_process_self \
		-Wl,--wrap=getrandom -lcmocka -lmnl -libverbs

fuzz-tests: $(FUZZ_BIN)

fuzz: fuzz-tests
	tests/fuzz/run --time $(FUZZ_TIME)
