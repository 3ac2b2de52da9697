// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kvpoolctl prints, byte by byte. Programs read the JSON: a key that
 * changes here breaks them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/format.h"

/* Every attribute set. */
static const struct kvp_pool_info full = {
	.id = 3, .generation = 17, .name = "target-0", .domain = "serving", .role = "target",
	.label = "7b \"q4\"", .rank = 0, .length = 3779571220, .mapped_length = 3781165056,
	.block_size = 2097152, .node = 1, .placement = KVP_PLACEMENT_STRICT,
	.lifetime = KVP_LIFETIME_PERSISTENT, .uid = 0, .gid = 998, .mode = 0640,
	.state = KVP_STATE_LIVE, .registration = KVP_REGISTRATION_COMMITTED, .blocks = 1803,
	.pinned_blocks = 5, .mappings = 2, .files = 3, .owned = 1, .owner_uid = 1000,
	.owner_pid = 4242, .owner_start = 12345678901234, .device = 240 << 20 | 4,
};

/* All that can be absent is, and the generation does not fit in a double. */
static const struct kvp_pool_info bare = {
	.id = 12, .generation = UINT64_MAX, .name = "d", .domain = "default", .rank = KVP_NONE,
	.length = 1, .mapped_length = 2097152, .block_size = 2097152, .node = KVP_NONE,
	.uid = 1000, .gid = 1000, .mode = 0600, .state = KVP_STATE_ORPHAN,
	.registration = KVP_REGISTRATION_FALLBACK_L2, .blocks = 1, .owner_uid = 1000,
};

/* Of another pid namespace. */
static const struct kvp_pool_info elsewhere = {
	.id = 13, .generation = 18, .name = "e", .domain = "default", .role = "draft",
	.rank = 11, .length = 4294967296, .mapped_length = 4294967296, .block_size = 2097152,
	.node = 0, .mode = 0600, .state = KVP_STATE_DYING,
	.registration = KVP_REGISTRATION_FAILED, .blocks = 2048, .pinned_blocks = 2048,
	.owned = 1,
};

static const struct pin_run runs[] = { { 0, 4 }, { 9, 1 } };

#define FULL_JSON							\
	"\"id\":3,\"generation\":17,\"name\":\"target-0\",\"domain\":\"serving\"," \
	"\"role\":\"target\",\"label\":\"7b \\\"q4\\\"\",\"rank\":0,\"length\":3779571220," \
	"\"mapped-length\":3781165056,\"block-size\":2097152,\"node\":1," \
	"\"placement\":\"strict\",\"lifetime\":\"persistent\",\"uid\":0,\"gid\":998," \
	"\"mode\":416,\"state\":\"live\",\"registration\":\"committed\",\"blocks\":1803," \
	"\"pinned-blocks\":5,\"mappings\":2,\"files\":3,\"owned\":true,\"owner-uid\":1000," \
	"\"owner-pid\":4242,\"owner-start\":12345678901234,\"device\":251658244"

#define BARE_JSON							\
	"\"id\":12,\"generation\":18446744073709551615,\"name\":\"d\",\"domain\":\"default\"," \
	"\"length\":1,\"mapped-length\":2097152,\"block-size\":2097152," \
	"\"placement\":\"preferred\",\"lifetime\":\"owner\",\"uid\":1000,\"gid\":1000," \
	"\"mode\":384,\"state\":\"orphan\",\"registration\":\"fallback-l2\",\"blocks\":1," \
	"\"pinned-blocks\":0,\"mappings\":0,\"files\":0,\"owned\":false,\"owner-uid\":1000"

/* A stream into memory, and its end: compares, and frees. */
static char *printed;
static size_t printed_size;

static FILE *out_open(void)
{
	FILE *out = open_memstream(&printed, &printed_size);

	assert_non_null(out);
	return out;
}

static void out_is(FILE *out, const char *wanted)
{
	assert_int_equal(fclose(out), 0);
	assert_string_equal(printed, wanted);
	free(printed);
}

/*
 * The same without the blanks and newlines of indentation, which are json-c's
 * own taste and differ between its versions. Those in strings stay.
 */
static void json_is(FILE *out, const char *wanted)
{
	const char *from;
	char *to, string = 0;

	assert_int_equal(fclose(out), 0);
	for (from = to = printed; *from; from++) {
		if (*from == '"' && (from == printed || from[-1] != '\\'))
			string = !string;
		if (string || (*from != ' ' && *from != '\n'))
			*to++ = *from;
	}
	*to = '\0';
	assert_string_equal(printed, wanted);
	free(printed);
}

static void assert_size(uint64_t bytes, const char *wanted)
{
	char text[FORMAT_SIZE_TEXT];

	assert_string_equal(format_size(bytes, text), wanted);
}

static void test_size(void **state)
{
	(void)state;
	assert_size(0, "0");
	assert_size(1023, "1023");
	assert_size(1024, "1K");
	assert_size(1535, "1.5K");
	assert_size(2097152, "2M");
	assert_size(2097153, "2M");
	assert_size(3779571220, "3.5G");
	assert_size((uint64_t)1024 << 30, "1T");
	/* Rounding up never gives ten tenths, nor 1024 of a unit. */
	assert_size(2097151, "2M");
	assert_size(((uint64_t)1 << 30) - 1, "1G");
	assert_size(UINT64_MAX, "16E");
}

static void test_list_text(void **state)
{
	const struct kvp_pool_info pools[] = { full, bare, elsewhere };
	FILE *out;

	(void)state;
	out = out_open();
	assert_int_equal(format_list_text(out, pools, 3), 0);
	out_is(out,
	       "ID                   GEN  NAME      DOMAIN   ROLE    RANK  SIZE  STATE   OWNER"
	       "  MAPS  PINS  REG\n"
	       " 3                    17  target-0  serving  target     0  3.5G  live     4242"
	       "     2     5  committed\n"
	       "12  18446744073709551615  d         default  -          -     1  orphan      -"
	       "     0     0  fallback-l2\n"
	       "13                    18  e         default  draft     11    4G  dying       ?"
	       "     0  2048  failed\n");

	out = out_open();
	assert_int_equal(format_list_text(out, NULL, 0), 0);
	out_is(out, "ID  GEN  NAME  DOMAIN  ROLE  RANK  SIZE  STATE  OWNER  MAPS  PINS  REG\n");
}

static void test_list_json(void **state)
{
	const struct kvp_pool_info pools[] = { full, bare };
	FILE *out;

	(void)state;
	out = out_open();
	assert_int_equal(format_list_json(out, pools, 2), 0);
	json_is(out, "[{" FULL_JSON "},{" BARE_JSON "}]");
	out = out_open();
	assert_int_equal(format_list_json(out, NULL, 0), 0);
	json_is(out, "[]");
}

static void test_pool_text(void **state)
{
	FILE *out;

	(void)state;
	out = out_open();
	format_pool_text(out, &full, runs, 2);
	out_is(out,
	       "name:           target-0\n"
	       "identity:       id:3.17\n"
	       "domain:         serving\n"
	       "role:           target\n"
	       "label:          7b \"q4\"\n"
	       "rank:           0\n"
	       "length:         3.5G (3779571220 bytes)\n"
	       "mapped length:  3.5G (3781165056 bytes)\n"
	       "block size:     2M (2097152 bytes)\n"
	       "node:           1, strict\n"
	       "lifetime:       persistent\n"
	       "access:         uid 0, gid 998, mode 0640\n"
	       "state:          live\n"
	       "registration:   committed\n"
	       "owner:          live session, uid 1000, pid 4242, "
	       "started 12345.678901234 s after boot\n"
	       "device:         240:4\n"
	       "mappings:       2\n"
	       "open files:     3\n"
	       "pinned blocks:  5 of 1803\n"
	       "pinned runs:    blocks 0-3, offset 0x0, 8M\n"
	       "                block 9, offset 0x1200000, 2M\n");

	out = out_open();
	format_pool_text(out, &bare, runs, 0);
	out_is(out,
	       "name:           d\n"
	       "identity:       id:12.18446744073709551615\n"
	       "domain:         default\n"
	       "role:           -\n"
	       "label:          -\n"
	       "rank:           -\n"
	       "length:         1 (1 bytes)\n"
	       "mapped length:  2M (2097152 bytes)\n"
	       "block size:     2M (2097152 bytes)\n"
	       "node:           none asked for\n"
	       "lifetime:       owner\n"
	       "access:         uid 1000, gid 1000, mode 0600\n"
	       "state:          orphan\n"
	       "registration:   fallback-l2\n"
	       "owner:          none; the last was uid 1000, pid not visible here\n"
	       "device:         -\n"
	       "mappings:       0\n"
	       "open files:     0\n"
	       "pinned blocks:  0 of 1\n"
	       "pinned runs:    none\n");
}

static void test_pool_json(void **state)
{
	FILE *out;

	(void)state;
	out = out_open();
	assert_int_equal(format_pool_json(out, &full, runs, 2), 0);
	json_is(out, "{" FULL_JSON ",\"pins\":[{\"first-block\":0,\"block-count\":4},"
		"{\"first-block\":9,\"block-count\":1}]}");
	/* No pins is not the same as not asked. */
	out = out_open();
	assert_int_equal(format_pool_json(out, &bare, runs, 0), 0);
	json_is(out, "{" BARE_JSON ",\"pins\":[]}");
	out = out_open();
	assert_int_equal(format_pool_json(out, &bare, NULL, 0), 0);
	json_is(out, "{" BARE_JSON "}");
}

static void test_stats(void **state)
{
	const struct kvp_stats stats = {
		.pools = 1, .orphans = 2, .dying = 3, .sessions = 4, .max_pools = 5,
		.bytes = 2097152, .dying_bytes = 1048576, .max_bytes = UINT64_MAX, .min_available = 8,
		.available = 1610612736, .created = 10, .destroyed = 11, .failed = 12,
	};
	FILE *out;

	(void)state;
	out = out_open();
	format_stats_text(out, &stats);
	out_is(out,
	       "pools:          1\n"
	       "orphans:        2\n"
	       "dying:          3\n"
	       "sessions:       4\n"
	       "max pools:      5\n"
	       "held:           2M (2097152 bytes)\n"
	       "of it dying:    1M (1048576 bytes)\n"
	       "max held:       16E (18446744073709551615 bytes)\n"
	       "available:      1.5G (1610612736 bytes)\n"
	       "min available:  8 (8 bytes)\n"
	       "created:        10\n"
	       "destroyed:      11\n"
	       "failed:         12\n");
	out = out_open();
	assert_int_equal(format_stats_json(out, &stats), 0);
	json_is(out, "{\"pools\":1,\"orphans\":2,\"dying\":3,\"bytes\":2097152,\"dying-bytes\":1048576,"
		"\"max-bytes\":18446744073709551615,\"max-pools\":5,\"min-available\":8,"
		"\"available\":1610612736,\"created\":10,\"destroyed\":11,\"failed\":12,"
		"\"sessions\":4}");
}

static void test_reserve(void **state)
{
	struct kvp_reserve_node nodes[] = { { 0, 3 << 20, 2 << 20, 1 << 20 }, { 2, 0, 0, 0 } };
	struct kvp_reserve_user user = { 1000, 5, 4 };
	const struct kvp_reserve reserve = {
		.policy = KVP_RESERVE_ONLY, .quota = 1 << 30, .node_count = 2, .user_count = 1,
		.nodes = nodes, .users = &user,
	}, none = { .policy = KVP_RESERVE_FIRST };
	FILE *out;

	(void)state;
	out = out_open();
	format_reserve_text(out, &reserve);
	out_is(out,
	       "policy:         only\n"
	       "default quota:  1G (1073741824 bytes)\n"
	       "node 0: 2M of 3M ready, 1M to clear\n"
	       "node 2: 0 of 0 ready, 0 to clear\n"
	       "uid 1000: 4 of 5 used\n");
	out = out_open();
	assert_int_equal(format_reserve_json(out, &reserve), 0);
	json_is(out, "{\"policy\":\"only\",\"quota\":1073741824,\"nodes\":["
		"{\"node\":0,\"target\":3145728,\"ready\":2097152,\"clearing\":1048576},"
		"{\"node\":2,\"target\":0,\"ready\":0,\"clearing\":0}],"
		"\"users\":[{\"uid\":1000,\"quota\":5,\"used\":4}]}");
	out = out_open();
	assert_int_equal(format_reserve_json(out, &none), 0);
	json_is(out, "{\"policy\":\"first\",\"quota\":0,\"nodes\":[],\"users\":[]}");
}

/* Not json_is(): an event is one line, and that line is what a program reads. */
static void test_events(void **state)
{
	FILE *out;

	(void)state;
	out = out_open();
	format_event_text(out, "create", 3, 17, &full);
	format_event_text(out, "destroy", 3, 17, NULL);
	format_event_text(out, "lost", 0, 0, NULL);
	format_progress_text(out, 3, 17, 42);
	out_is(out,
	       "create  target-0 id:3.17 domain=serving role=target rank=0 size=3.5G state=live "
	       "registration=committed\n"
	       "destroy id:3.17\n"
	       "lost    events were lost, the pools that exist now follow\n"
	       "progress id:3.17 42%\n");
	out = out_open();
	assert_int_equal(format_event_json(out, "create", 3, 17, &full), 0);
	assert_int_equal(format_event_json(out, "destroy", 3, 17, NULL), 0);
	assert_int_equal(format_event_json(out, "lost", 0, 0, NULL), 0);
	assert_int_equal(format_progress_json(out, 3, 17, 42), 0);
	out_is(out,
	       "{\"event\":\"create\",\"id\":3,\"generation\":17,\"pool\":{" FULL_JSON "}}\n"
	       "{\"event\":\"destroy\",\"id\":3,\"generation\":17}\n"
	       "{\"event\":\"lost\"}\n"
	       "{\"event\":\"progress\",\"id\":3,\"generation\":17,\"progress\":42}\n");
}

static void test_destroyed(void **state)
{
	FILE *out;

	(void)state;
	out = out_open();
	assert_int_equal(format_destroyed_json(out, 3, 17, NULL), 0);
	json_is(out, "{\"id\":3,\"generation\":17}");
	out = out_open();
	assert_int_equal(format_destroyed_json(out, 12, UINT64_MAX, &bare), 0);
	json_is(out, "{\"id\":12,\"generation\":18446744073709551615,\"pool\":{" BARE_JSON "}}");
}

static void test_span(void **state)
{
	const struct kvp_span span = {
		.domain = "serving", .id = 3, .generation = 17, .offset = 4096, .length = 8,
	};
	static const char text[] = "kvpool:serving:3:17:4096:8";
	FILE *out;

	(void)state;
	out = out_open();
	format_span_text(out, text, &full, NULL);
	format_span_text(out, text, NULL, "no pool has the id");
	out_is(out,
	       "kvpool:serving:3:17:4096:8: live, of pool target-0 id:3.17 domain=serving "
	       "role=target rank=0 size=3.5G state=live registration=committed\n"
	       "kvpool:serving:3:17:4096:8: not live: no pool has the id\n");
	out = out_open();
	assert_int_equal(format_span_json(out, text, &span, &full, NULL), 0);
	json_is(out, "{\"span\":\"kvpool:serving:3:17:4096:8\",\"domain\":\"serving\",\"id\":3,"
		"\"generation\":17,\"offset\":4096,\"length\":8,\"live\":true,"
		"\"pool\":{" FULL_JSON "}}");
	out = out_open();
	assert_int_equal(format_span_json(out, text, &span, NULL, "gone"), 0);
	json_is(out, "{\"span\":\"kvpool:serving:3:17:4096:8\",\"domain\":\"serving\",\"id\":3,"
		"\"generation\":17,\"offset\":4096,\"length\":8,\"live\":false,"
		"\"reason\":\"gone\"}");
}

static void test_backing(void **state)
{
	struct maps_segment segments[] = {
		{ .addr = 0x7f0000000000, .length = 0x200000, .kind = KVP_KIND_POOL,
		  .readable = true, .writable = true, .offset = 0x400000, .path = "kvpool:3.17",
		  .match = MAPS_MATCH_IDENTITY, .id = 3, .generation = 17 },
		{ .addr = 0x7f0000200000, .length = 0x1000, .kind = KVP_KIND_UNMAPPED, .path = "" },
		/* An escape sequence, a byte that is no UTF-8, a character that is. */
		{ .addr = 0x7f0000201000, .length = 0x1000, .kind = KVP_KIND_FILE,
		  .readable = true, .path = "/t\033[1m\xff\xc3\xa9" },
		{ .addr = 0x7f0000202000, .length = 0x1000, .kind = KVP_KIND_POOL,
		  .readable = true, .path = "/dev/kvpool/d", .match = MAPS_MATCH_NAME,
		  .name = "d" },
		{ .addr = 0x7f0000203000, .length = 0x1000, .kind = KVP_KIND_POOL,
		  .readable = true, .path = "/dev/kvpool/d (deleted)" },
		{ .addr = 0x7f0000204000, .length = 0x1000, .kind = KVP_KIND_ANON,
		  .offset = 0x5000, .path = "" },
		/* The module could not be asked. */
		{ .addr = 0x7f0000205000, .length = 0x1000, .kind = KVP_KIND_POOL,
		  .path = "kvpool:4.19", .match = MAPS_MATCH_IDENTITY, .id = 4,
		  .generation = 19 },
	};
	const struct backing backings[] = {
		{ .segment = &segments[0], .known = true, .pool = full },
		{ .segment = &segments[1] },
		{ .segment = &segments[2] },
		{ .segment = &segments[3], .known = true, .pool = bare },
		{ .segment = &segments[4], .stale = true },
		{ .segment = &segments[5] },
		{ .segment = &segments[6] },
	};
	FILE *out;

	(void)state;
	out = out_open();
	format_backing_text(out, backings, 7);
	out_is(out,
	       "7f0000000000-7f0000200000       2M  rw  pool      target-0 id:3.17 "
	       "domain=serving offset=0x400000\n"
	       "7f0000200000-7f0000201000       4K  --  unmapped\n"
	       "7f0000201000-7f0000202000       4K  r-  file      /t?[1m???\n"
	       "7f0000202000-7f0000203000       4K  r-  pool      d id:12.18446744073709551615 "
	       "domain=default offset=0x0 (matched by name)\n"
	       "7f0000203000-7f0000204000       4K  r-  pool      /dev/kvpool/d (deleted) "
	       "offset=0x0 (ended)\n"
	       "7f0000204000-7f0000205000       4K  --  anon\n"
	       "7f0000205000-7f0000206000       4K  --  pool      id:4.19 offset=0x0\n");

	out = out_open();
	assert_int_equal(format_backing_json(out, 7, 0x7f0000000000, 0x206000, backings, 7), 0);
	json_is(out,
		"{\"pid\":7,\"addr\":139637976727552,\"length\":2121728,\"segments\":["
		"{\"addr\":139637976727552,\"length\":2097152,\"kind\":\"pool\",\"readable\":true,"
		"\"writable\":true,\"offset\":4194304,\"path\":\"kvpool:3.17\",\"id\":3,"
		"\"generation\":17,\"matched-by\":\"identity\",\"stale\":false,"
		"\"pool\":{" FULL_JSON "}},"
		"{\"addr\":139637978824704,\"length\":4096,\"kind\":\"unmapped\"},"
		"{\"addr\":139637978828800,\"length\":4096,\"kind\":\"file\",\"readable\":true,"
		"\"writable\":false,\"offset\":0,\"path\":\"/t\\u001b[1m?\xc3\xa9\"},"
		"{\"addr\":139637978832896,\"length\":4096,\"kind\":\"pool\",\"readable\":true,"
		"\"writable\":false,\"offset\":0,\"path\":\"/dev/kvpool/d\",\"id\":12,"
		"\"generation\":18446744073709551615,\"matched-by\":\"name\",\"stale\":false,"
		"\"pool\":{" BARE_JSON "}},"
		"{\"addr\":139637978836992,\"length\":4096,\"kind\":\"pool\",\"readable\":true,"
		"\"writable\":false,\"offset\":0,\"path\":\"/dev/kvpool/d (deleted)\","
		"\"stale\":true},"
		"{\"addr\":139637978841088,\"length\":4096,\"kind\":\"anon\",\"readable\":false,"
		"\"writable\":false},"
		"{\"addr\":139637978845184,\"length\":4096,\"kind\":\"pool\",\"readable\":false,"
		"\"writable\":false,\"offset\":0,\"path\":\"kvpool:4.19\",\"id\":4,"
		"\"generation\":19,\"matched-by\":\"identity\"}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_list_text),
		cmocka_unit_test(test_list_json),
		cmocka_unit_test(test_pool_text),
		cmocka_unit_test(test_pool_json),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_destroyed),
		cmocka_unit_test(test_span),
		cmocka_unit_test(test_backing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
