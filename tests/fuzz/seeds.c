// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where fuzzing starts from: journals as the library writes them, at each moment
 * of a registration's life, answers as the kernel gives them, and texts.
 *   seeds DIRECTORY: write them to DIRECTORY/journals, answers and texts
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/fake_journal.h"
#include "../unit/fake_script.h"

#define POOLS 4		/* a buffer in each */

int __wrap_kvp_process_self(struct kvp_process *self);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned int flags);

static const char *target;
static unsigned int seeds;
static struct kvp_process writer;

/* The same seeds every time. */
int __wrap_kvp_process_self(struct kvp_process *self)
{
	*self = writer;
	return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned int flags)
{
	(void)flags;
	memset(bytes, 0, size);
	return (ssize_t)size;
}

static FILE *seed_open(const char *kind)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/seed-%02u", target, kind, seeds++);
	file = fopen(path, "we");
	assert_non_null(file);
	return file;
}

/* ------------------------------------------------------------------ journals */

static int fail_at;	/* the call of the registrar that fails, from 1 */
static bool reversed;	/* its devices have each other's number */
/* That of another process, to be in the directory too. */
static char *other;
static size_t other_size;

/* A copy of the journal as it is now: what a death would leave here. */
static void snapshot(void)
{
	size_t size;
	char *bytes = fake_journal_load(fake_journal_path(), &size);
	FILE *file = seed_open("journals");

	if (other)
		fwrite(other, 1, other_size, file);
	fwrite(bytes, 1, size, file);
	fclose(file);
	free(bytes);
}

static int limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static int do_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	(void)arg;
	snapshot();
	*cookie = (void *)(uintptr_t)(chunk->span.offset + device);
	return fail_at && !--fail_at ? 600 : 0;
}

static int do_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	(void)arg;
	(void)device;
	(void)chunk;
	(void)cookie;
	snapshot();
	return fail_at && !--fail_at ? -EBUSY : 0;
}

static const char *device_name(void *arg, uint32_t device)
{
	(void)arg;
	return device == !reversed ? "tape" : "disk";
}

static struct kvp_registrar *make_registrar(int external)
{
	struct kvp_registrar_ops ops = KVP_INIT(struct kvp_registrar_ops);
	struct kvp_registrar *registrar;

	ops.limits = limits;
	ops.register_chunk = do_register;
	ops.unregister_chunk = do_unregister;
	ops.device_name = device_name;
	ops.name = external ? "store" : NULL;
	ops.external = external;
	assert_int_equal(kvp_registrar_new(&ops, NULL, 2, &registrar), 0);
	return registrar;
}

/*
 * Registered at both, or refused at a call; then unregistered, or not at the first
 * try. `keep`: the next are beside it.
 */
static void journals(uint32_t pid, bool created, int fail_register, int fail_unregister, bool keep)
{
	struct kvp_registrar *registrars[2] = { make_registrar(1), make_registrar(0) };
	struct kvp_buffer buffers[POOLS] = { { 0 } };
	struct kvp_registration *registration;
	struct kvp_ctx *ctx;
	struct kvp_list *list;
	void *state = NULL;
	uint32_t i;

	writer = (struct kvp_process){ .pid = pid, .start = 1000 };
	assert_int_equal(fake_world_setup(&state), 0);
	ctx = fake_world_ctx();
	for (i = 0; i < POOLS; i++) {
		fake_world_pool(i + 1, FAKE_BASE + i * 64 * MIB, 64 * MIB);
		ctx->owned->created = created;
		buffers[i].addr = (void *)(uintptr_t)(FAKE_BASE + i * 70 * MIB);
		buffers[i].length = 2 * MIB;
		buffers[i].flags = i == 1 ? KVP_BUFFER_READ_ONLY : 0;
	}
	list = fake_world_list(buffers, POOLS);
	assert_int_equal(kvp_log_init(&ctx->log, fake_journal_dir(), NULL), 0);
	fail_at = fail_register;
	kvp_register(ctx, "kv", list, registrars, 2, NULL, &registration, NULL);
	snapshot();
	if (keep)
		other = fake_journal_load(fake_journal_path(), &other_size);
	fail_at = fail_unregister;
	while (registration && kvp_unregister(ctx, &registration, NULL))
		;
	snapshot();
	kvp_log_free(&ctx->log);
	kvp_list_free(list);
	kvp_registrar_free(registrars[0]);
	kvp_registrar_free(registrars[1]);
	fake_journal_remove();
	assert_int_equal(fake_world_teardown(&state), 0);
}

/* ------------------------------------------------------------------- answers */

/* The script's datagrams so far, as answers to the call `which`. */
static void answers(uint8_t which)
{
	FILE *file = seed_open("answers");
	size_t i, j;

	putc(which, file);
	for (i = 0; i < fake.count; i++) {
		for (j = 0; j < fake.steps[i].datagram_count; j++) {
			const struct datagram *datagram = &fake.steps[i].datagrams[j];

			putc((int)(datagram->size & 0xff), file);
			putc((int)(datagram->size >> 8), file);
			fwrite(datagram->bytes, 1, datagram->size, file);
		}
	}
	fclose(file);
	fake_script_free();
}

/* The same, behind the structs that ioctls give back. */
static void answers_ioctl(uint8_t which, const struct kvp_pool_info *pool)
{
	struct kvpool_open open = { .size = sizeof(open), .id = pool->id,
				    .generation = pool->generation };
	struct kvpool_info info = {
		.size = sizeof(info), .id = pool->id, .generation = pool->generation,
		.length = pool->length, .mapped_length = pool->mapped_length, .block_size = 1 << 21,
	};

	memcpy(info.domain, pool->domain, sizeof(info.domain));
	fake_request(FAKE_FAMILY, 0, 0);
	fake_datagram();
	fake.steps[fake.count - 1].datagrams[0].size = 1 + sizeof(open);
	memcpy(fake.steps[fake.count - 1].datagrams[0].bytes + 1, &open, sizeof(open));
	fake_datagram();
	fake.steps[fake.count - 1].datagrams[1].size = 1 + sizeof(info);
	memcpy(fake.steps[fake.count - 1].datagrams[1].bytes + 1, &info, sizeof(info));
	if (which == 7)
		fake_ack(0, NULL);
	answers(which);
}

static void answers_resolve(uint8_t which)
{
	const uint64_t half = 32 * KVP_BLOCK_SIZE;
	struct {
		uint8_t err, pad[7];
		struct kvpool_resolve resolve;
		struct kvpool_segment segments[2];
	} answer = {
		.resolve = { .size = sizeof(answer.resolve), .count = 2, .resolved = 2 * half },
		.segments = {
			{ .addr = 0, .length = half, .kind = KVPOOL_SEGMENT_POOL, .id = 12,
			  .generation = 34, .pool_length = half, .domain = "kv",
			  .flags = KVPOOL_SEGMENT_READ | KVPOOL_SEGMENT_WRITE },
			{ .addr = half, .length = half, .kind = KVPOOL_SEGMENT_SHMEM },
		},
	};

	fake_request(FAKE_FAMILY, 0, 0);
	fake_datagram();
	fake.steps[0].datagrams[0].size = sizeof(answer) - 7;
	memcpy(fake.steps[0].datagrams[0].bytes + 1, &answer.resolve, sizeof(answer) - 8);
	answers(which);
}

static void request(uint8_t command)
{
	fake_request(FAKE_FAMILY, command, 0);
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, command);
}

static void all_answers(void)
{
	struct kvp_pool_info pool = fake_pool_full;
	char long_name[KVP_NAME_SIZE + 1] = "";
	uint16_t type;

	pool.id = 12;
	pool.generation = 34;
	pool.length = 1 << 20;
	fake_family(1);
	answers(0);
	request(KVPOOL_CMD_POOL_GET);
	fake_put_pool(&fake_pool_full, 0, FAKE_WHOLE);
	fake_ack(0, NULL);
	answers(1);
	/* A name that is longer by one than a name may be. */
	request(KVPOOL_CMD_POOL_GET);
	fake_put_pool(&fake_pool_full, KVPOOL_A_POOL_LABEL, FAKE_OMIT);
	memset(long_name, 'x', KVP_NAME_SIZE);
	fake_put_text(KVPOOL_A_POOL_LABEL, long_name);
	fake_ack(0, NULL);
	answers(1);
	fake_request(FAKE_FAMILY, 0, 0);
	fake_ack_at(-EINVAL, "that's wrong.", KVPOOL_A_POOL_ID);
	answers(1);
	fake_request(FAKE_FAMILY, 0, 0);
	fake_ack_missing(-EINVAL, NULL, KVPOOL_A_POOL_ID);
	answers(2);
	request(KVPOOL_CMD_POOL_GET);
	fake_put_pool(&fake_pool_plain, 0, FAKE_WHOLE);
	fake_message(FAKE_FAMILY, NLM_F_MULTI, KVPOOL_CMD_POOL_GET);
	fake_put_pool(&fake_pool_full, 0, FAKE_WHOLE);
	fake_datagram();
	fake_done(0, NULL);
	answers(3);
	request(KVPOOL_CMD_PIN_GET);
	fake_put_u32(KVPOOL_A_POOL_FIRST_BLOCK, 3);
	fake_put_u32(KVPOOL_A_POOL_BLOCK_COUNT, 4);
	fake_done(0, NULL);
	answers(4);
	request(KVPOOL_CMD_STATS_GET);
	for (type = KVPOOL_A_STATS_POOLS; type <= KVPOOL_A_STATS_MAX; type++) {
		if (type <= KVPOOL_A_STATS_DYING || type == KVPOOL_A_STATS_MAX_POOLS ||
		    type == KVPOOL_A_STATS_SESSIONS)
			fake_put_u32(type, type);
		else
			fake_put_u64(type, type);
	}
	fake_ack(0, NULL);
	answers(5);
	request(KVPOOL_CMD_POOL_CREATE);
	fake_put_pool(&pool, 0, FAKE_WHOLE);
	fake_ack(0, NULL);
	answers_ioctl(6, &pool);
	answers_ioctl(7, &pool);
	request(KVPOOL_CMD_POOL_GET);
	fake_put_pool(&pool, 0, FAKE_WHOLE);
	fake_ack(0, NULL);
	answers_ioctl(8, &pool);
	answers_ioctl(9, &pool);
	fake_request(FAKE_FAMILY, 0, 0);
	fake_ack(0, NULL);
	answers(10);
	fake_request(FAKE_FAMILY, 0, 0);
	fake_ack(-ENOENT, "no such pool");
	answers(11);
	fake_family(1);
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_CREATE_NTF);
	fake_put_u32(KVPOOL_A_POOL_ID, 3);
	fake_put_u64(KVPOOL_A_POOL_GENERATION, 4);
	answers(12);
	answers_resolve(13);
	answers_resolve(14);
}

/* --------------------------------------------------------------------- texts */

static void all_texts(void)
{
	static const char *const texts[] = {
		"skvpool:kv:1:101:0:4096",
		"skvpool:a_-9:4294967295:18446744073709551615:1:18446744073709551614",
		"p1 (a) b) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0\n",
		"m1000-3000 rw-p 00000000 00:00 0 \n"
		"3000-5000 rw-s 00001000 00:05 1026 /memfd:a (deleted)\n",
		"M1000-3000 rw-s 00000000 00:0f 12 /kvpool:3.7\n"
		"3000-5000 r--s 00200000 00:06 9 /dev/kvpool/kv-target\n"
		"6000-9000 rw-p 00000000 00:00 0 [heap]\n",
		"w0x1000 2M", "w1000-2000", "wid:3.7", "w0640", "wkv-target",
	};
	const struct kvp_span span = {
		.domain = "kv", .id = 1, .generation = 101, .offset = 4096, .length = 8192,
	};
	FILE *file;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		file = seed_open("texts");
		fputs(texts[i], file);
		fclose(file);
	}
	file = seed_open("texts");
	putc('S', file);
	fwrite(&span, 1, sizeof(span), file);
	fclose(file);
	/* Options of 48 bytes, which is more than the library knows. */
	file = seed_open("texts");
	fwrite("o\x30\0/dev/kvpool/control", 1, 22, file);
	fclose(file);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	target = argv[1];
	journals(1, true, 0, 0, false);
	journals(2, false, 4, 0, false);
	journals(5, true, 0, 0, false);
	journals(7, false, 0, 2, false);
	/* Two dead ones, then a dead one and a running one. */
	journals(3, false, 0, 0, true);
	journals(4, true, 0, 2, false);
	free(other);
	other = NULL;
	journals(6, false, 0, 0, true);
	reversed = true;
	journals(1, false, 0, 2, false);
	free(other);
	seeds = 0;
	all_answers();
	seeds = 0;
	all_texts();
	return 0;
}
