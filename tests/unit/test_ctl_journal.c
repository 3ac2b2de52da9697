// SPDX-License-Identifier: GPL-2.0-only
/* What kvpoolctl prints of a journal, byte by byte. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include <json-c/json.h>

#include "../../tools/format_journal.h"
#include "fake_journal.h"

static char built[2048];
static size_t built_size;
static uint64_t built_records;

static void put(union kvp_journal_any_record record, enum kvp_journal_type type)
{
	const size_t size = kvp_journal_seal(&record.head, type, built_records++);

	memcpy(built + built_size, &record, size);
	built_size += size;
}

/* A registration in a store that was in force, of a process of another boot. */
static void build(void)
{
	union kvp_journal_any_record record = { 0 };

	built_size = built_records = 0;
	record.file.pid = htole32(4242);
	record.file.uid = htole32(1000);
	record.file.start = htole64(77);
	memset(record.file.boot_id, 0xab, 16);
	memset(record.file.session, 0xcd, 16);
	strcpy(record.file.library, "0.1");
	put(record, KVP_JOURNAL_FILE);
	record = (union kvp_journal_any_record){ .begin = {
		.transaction = htole64(1), .entries = htole32(1), .pools = htole32(1),
		.domain = "kv",
	} };
	put(record, KVP_JOURNAL_BEGIN);
	record = (union kvp_journal_any_record){ .pool = {
		.transaction = htole64(1), .generation = htole64(9), .id = htole32(3),
		.flags = htole32(KVP_JOURNAL_POOL_CREATED),
	} };
	put(record, KVP_JOURNAL_POOL);
	record = (union kvp_journal_any_record){ .device = {
		.transaction = htole64(1), .flags = htole32(KVP_JOURNAL_DEVICE_EXTERNAL),
		.registrar = "store", .name = "d\033[0m",
	} };
	put(record, KVP_JOURNAL_DEVICE);
	record = (union kvp_journal_any_record){ .intent = {
		.transaction = htole64(1), .addr = htole64(0x1000), .length = htole64(4096),
		.generation = htole64(9), .pool = htole32(3),
	} };
	put(record, KVP_JOURNAL_INTENT);
	record = (union kvp_journal_any_record){ .outcome = {
		.transaction = htole64(1), .cookie = htole64(5),
	} };
	put(record, KVP_JOURNAL_OUTCOME);
}

static struct kvp_journal *parse(size_t size)
{
	struct kvp_journal *journal;

	assert_int_equal(kvp_journal_parse(built, size, &journal), 0);
	return journal;
}

static void prints(size_t size, const char *want)
{
	struct kvp_journal *journal = parse(size);
	char text[2048];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	format_journal_text(out, "/run/a.journal", journal);
	fclose(out);
	kvp_journal_free(journal);
	assert_string_equal(text, want);
}

#define PROCESS \
	"  process 4242 of uid 1000, started at tick 77 of boot abababab-abab-abab-abab-" \
	"abababababab: whether it runs can't be told from here\n" \
	"  session cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd, library 0.1\n"
#define ENTRY "kvpool:kv:3:9:0:4096, registrar store (external), device 0 d?[0m"
#define RECORDS \
	"         0  file   \n" \
	"       104  begin    transaction 1: 1 entry and 1 pool of domain kv\n" \
	"       208  pool     transaction 1: id:3.9, created by this session\n" \
	"       256  device   transaction 1: registrar store (external), device 0 d?[0m\n" \
	"       424  intent   transaction 1 entry 0: " ENTRY "\n"

static void test_text(void **state)
{
	(void)state;
	build();
	prints(built_size, "/run/a.journal: whole, 6 records, 1 transaction (1 open), 1 entry open\n"
	       PROCESS RECORDS
	       "       512  outcome  transaction 1 entry 0: registered\n"
	       "  open: transaction 1 entry 0, registered: " ENTRY
	       "; recovery has it unregistered\n");
	prints(built_size - 8,
	       "/run/a.journal: torn, 5 records, 1 transaction (1 open), 1 entry open\n"
	       PROCESS RECORDS
	       "       512  torn: 40 of 48 bytes of a record of type outcome, then the file ends"
	       " (40 bytes are left)\n"
	       "  open: transaction 1 entry 0, intended: " ENTRY
	       "; recovery has it unregistered\n");
	prints(0, "/run/a.journal: torn, 0 records, 0 transactions (0 open), 0 entries open\n"
	       "         0  torn: the file is empty (0 bytes are left)\n");
}

static void test_json(void **state)
{
	struct kvp_journal *journal;
	struct json_object *object;

	(void)state;
	build();
	journal = parse(built_size);
	object = format_journal_object("/run/a.journal", journal);
	assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
							   JSON_C_TO_STRING_NOSLASHESCAPE),
		"{\"path\":\"/run/a.journal\",\"condition\":\"whole\",\"size\":560,\"offset\":560,"
		"\"open-transactions\":1,\"open-entries\":1,\"process\":{\"pid\":4242,\"uid\":1000,"
		"\"start\":77,\"boot-id\":\"abababab-abab-abab-abab-abababababab\","
		"\"pid-namespace\":0,\"time-namespace\":0,"
		"\"session\":\"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd\",\"library\":\"0.1\","
		"\"liveness\":\"unknown\"},\"records\":["
		"{\"offset\":0,\"length\":104,\"sequence\":0,\"type\":\"file\"},"
		"{\"offset\":104,\"length\":104,\"sequence\":1,\"type\":\"begin\",\"transaction\":1},"
		"{\"offset\":208,\"length\":48,\"sequence\":2,\"type\":\"pool\",\"transaction\":1},"
		"{\"offset\":256,\"length\":168,\"sequence\":3,\"type\":\"device\",\"transaction\":1},"
		"{\"offset\":424,\"length\":88,\"sequence\":4,\"type\":\"intent\",\"transaction\":1,"
		"\"entry\":0},"
		"{\"offset\":512,\"length\":48,\"sequence\":5,\"type\":\"outcome\",\"transaction\":1,"
		"\"entry\":0,\"code\":0}],\"transactions\":[{\"transaction\":1,\"domain\":\"kv\","
		"\"entries\":1,\"pools\":1,\"committed\":false,\"ended\":false}],"
		"\"pools\":[{\"transaction\":1,\"id\":3,\"generation\":9,\"created\":true,"
		"\"committed\":false}],\"devices\":[{\"transaction\":1,"
		"\"registrar\":\"store\",\"external\":true,\"device\":0,\"device-name\":\"d\\u001b[0m\"}],"
		"\"entries\":[{\"transaction\":1,\"entry\":0,\"index\":0,"
		"\"span\":\"kvpool:kv:3:9:0:4096\",\"addr\":4096,\"registrar\":\"store\","
		"\"external\":true,\"device\":0,\"device-name\":\"d\\u001b[0m\",\"cookie\":5,"
		"\"state\":\"registered\",\"code\":0,\"open\":true}]}");
	json_object_put(object);
	kvp_journal_free(journal);
	journal = parse(3);
	object = format_journal_object("x", journal);
	assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN),
		"{\"path\":\"x\",\"condition\":\"torn\",\"reason\":\"3 bytes of a record, then the file "
		"ends\",\"size\":3,\"offset\":0,\"open-transactions\":0,\"open-entries\":0,"
		"\"records\":[],\"transactions\":[],\"pools\":[],\"devices\":[],\"entries\":[]}");
	json_object_put(object);
	kvp_journal_free(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
