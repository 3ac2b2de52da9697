// SPDX-License-Identifier: GPL-2.0
#include "matrix.h"

#include <dirent.h>

#define JOURNALS "/run/kvpool"
#define SYSFS "/sys/class/kvpool"

/* ---------------------------------------------------------------------- ranks */

uint64_t page_seed(const struct part *part, uint32_t page)
{
	return 1000 * (part->rank + 1) + 100 * (part->role[0] == 'd') + page;
}

static void part_name(const struct part *part, char name[KVP_NAME_SIZE])
{
	snprintf(name, KVP_NAME_SIZE, "%s%" PRIu32, part->role, part->rank);
}

static void part_map(struct part *part)
{
	struct kvp_buffer buffers[PAGES] = { { 0 } };

	part->addr = map_pool(part->pool);
	for (uint32_t i = 0; i < PAGES; i++) {
		buffers[i].addr = part->addr + i * BLOCK;
		buffers[i].length = BLOCK;
	}
	part->list = list_of(buffers, PAGES);
}

void part_allocate(struct rank *rank, struct part *part)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	char name[KVP_NAME_SIZE];

	part_name(part, name);
	options.domain = "kv";
	options.name = name;
	options.role = part->role;
	options.rank = part->rank;
	options.has_rank = 1;
	options.length = PAGES * BLOCK;
	options.lifetime = rank->lifetime;
	RETURNS(0, kvp_pool_create(rank->ctx, &options, &part->pool, &error));
	part_map(part);
	for (uint32_t i = 0; i < PAGES; i++)
		fill(part->addr + i * BLOCK, PAGE_BYTES, page_seed(part, i));
}

static void part_claim(struct rank *rank, struct part *part)
{
	struct kvp_pool_info info;
	char name[KVP_NAME_SIZE];

	part_name(part, name);
	RETURNS(0, kvp_pool_find_name(rank->ctx, name, &info, &error));
	SAME(info.role, part->role);
	EQUAL(info.rank, part->rank);
	RETURNS(0, kvp_pool_claim(rank->ctx, info.id, info.generation, &part->pool, &error));
	part_map(part);
}

static void rank_begin(struct rank *rank, uint32_t number, enum kvp_lifetime lifetime,
		       const struct kvp_options *options)
{
	*rank = (struct rank){
		.number = number, .lifetime = lifetime,
		.target = { .role = "target", .rank = number },
		.draft = { .role = "draft", .rank = number },
	};
	RETURNS(0, kvp_open(options, &rank->ctx, &error));
}

void rank_open_with(struct rank *rank, uint32_t number, enum kvp_lifetime lifetime,
		    const struct kvp_options *options)
{
	rank_begin(rank, number, lifetime, options);
	part_allocate(rank, &rank->target);
	part_allocate(rank, &rank->draft);
}

void rank_open(struct rank *rank, uint32_t number, enum kvp_lifetime lifetime)
{
	rank_open_with(rank, number, lifetime, NULL);
}

void rank_claim(struct rank *rank, uint32_t number)
{
	rank_begin(rank, number, KVP_LIFETIME_PERSISTENT, NULL);
	part_claim(rank, &rank->target);
	part_claim(rank, &rank->draft);
}

void rank_use(struct rank *rank, struct kvp_registrar *registrar)
{
	rank->registrars[rank->registrar_count++] = registrar;
}

static const char *page_get(const struct part *part, uint32_t page)
{
	return part->addr + page * BLOCK;
}

static int commit(const struct kvp_registration *registration, void *arg)
{
	struct part *part = arg;

	CHECK(kvp_registration_count(registration));
	part->visible = true;
	part->page_get = page_get;
	part->commits++;
	return 0;
}

int part_register(struct rank *rank, struct part *part)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);

	options.commit = commit;
	options.arg = part;
	options.name = part->role;
	return kvp_register(rank->ctx, "kv", part->list, rank->registrars, rank->registrar_count,
			    &options, &part->registration, &last_error);
}

int part_unregister(struct rank *rank, struct part *part)
{
	part->visible = false;
	part->page_get = NULL;
	return kvp_unregister(rank->ctx, &part->registration, &last_error);
}

void part_is_hidden(const struct part *part)
{
	CHECK(!part->visible);
	CHECK(!part->page_get);
	EQUAL(part->commits, 0);
	CHECK(!part->registration);
}

void part_destroy(struct rank *rank, struct part *part)
{
	const uint32_t id = kvp_pool_id(part->pool);
	const uint64_t generation = kvp_pool_generation(part->pool);
	const uint64_t destroyed = stats(rank->ctx).destroyed;

	EQUAL(kvp_pool_unmap(part->pool), 0);
	RETURNS(0, kvp_pool_destroy(rank->ctx, id, generation, 0, &error));
	EQUAL(stats(rank->ctx).destroyed, destroyed + 1);
	kvp_pool_close(part->pool);
	RETURNS(-ENOENT, kvp_pool_destroy(rank->ctx, id, generation, 0, &error));
	EQUAL(stats(rank->ctx).destroyed, destroyed + 1);
	kvp_list_free(part->list);
	*part = (struct part){ .role = part->role, .rank = part->rank };
}

void rank_close(struct rank *rank)
{
	struct part *const parts[] = { &rank->draft, &rank->target };

	for (int i = 0; i < 2; i++) {
		if (!parts[i]->pool)
			continue;
		EQUAL(part_unregister(rank, parts[i]), 0);
		part_destroy(rank, parts[i]);
	}
	while (rank->registrar_count)
		kvp_registrar_free(rank->registrars[--rank->registrar_count]);
	kvp_close(rank->ctx);
	rank->ctx = NULL;
}

bool part_is_filled(const struct part *part)
{
	for (uint32_t i = 0; i < PAGES; i++)
		if (!filled(part->addr + i * BLOCK, PAGE_BYTES, page_seed(part, i)))
			return false;
	return true;
}

struct kvp_span page_span(struct rank *rank, const struct part *part, uint32_t page)
{
	struct kvp_span span;

	RETURNS(0, kvp_span_export(rank->ctx, "kv", part->addr + page * BLOCK, PAGE_BYTES, &span,
				   &error));
	return span;
}

/* ---------------------------------------------------------------------- state */

static void read_attribute(const char *pool, const char *name, char *value, size_t size)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), SYSFS "/%.100s/%s", pool, name);
	f = fopen(path, "re");
	if (!f)
		FAIL("can't open %s (errno %d)", path, errno);
	CHECK(fgets(value, (int)size, f));
	fclose(f);
	value[strcspn(value, "\n")] = 0;
}

static int not_dot(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "control");
}

/* Files of a directory, in the order of names; 0 where there is none. */
static int list(const char *path, struct dirent ***entries)
{
	const int count = scandir(path, entries, not_dot, alphasort);

	CHECK(count >= 0 || errno == ENOENT);
	return count < 0 ? 0 : count;
}

static void free_list(struct dirent **entries, int count)
{
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count)
		free(entries);
}

static void pools_now(char *text, size_t size)
{
	struct dirent **entries;
	const int count = list(SYSFS, &entries);
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		char state[32], pinned[32];

		read_attribute(name, "registration", state, sizeof(state));
		read_attribute(name, "pinned_blocks", pinned, sizeof(pinned));
		used += (size_t)snprintf(text + used, size - used, "%s%s:%s", used ? " " : "",
					 name, state);
		if (strcmp(pinned, "0"))
			used += (size_t)snprintf(text + used, size - used, "/%s", pinned);
	}
	free_list(entries, count);
}

static int journals_now(void)
{
	struct dirent **entries;
	const int count = list(JOURNALS, &entries);

	free_list(entries, count);
	return count;
}

const char *journal_path(void)
{
	static char path[400];
	struct dirent **entries;
	const int count = list(JOURNALS, &entries);

	EQUAL(count, 1);
	snprintf(path, sizeof(path), JOURNALS "/%s", entries[0]->d_name);
	free_list(entries, count);
	return path;
}

void state_is(const char *file, int line, struct kvp_ctx *ctx, const char *pools,
	      struct store *store, const char *held, int journals)
{
	struct kvp_error error = { 0 };
	char now[1000];

	if (ctx && kvp_verify(ctx, &error))
		case_fail(file, line, "kvp_verify(): %s", error.message);
	pools_now(now, sizeof(now));
	if (strcmp(now, pools))
		case_fail(file, line, "pools are \"%s\", not \"%s\"", now, pools);
	if (store) {
		const char *holds = store_holds(store);

		if (strcmp(holds, held))
			case_fail(file, line, "the store holds \"%s\", not \"%s\"", holds, held);
	}
	if (journals_now() != journals)
		case_fail(file, line, "%d journals are there, not %d", journals_now(), journals);
}

/* ------------------------------------------------------------------- recovery */

struct kvp_recovery_report recover_by(struct kvp_ctx *ctx, struct kvp_registrar *registrar)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_recovery_report report;

	options.registrars = &registrar;
	options.registrar_count = registrar ? 1 : 0;
	RETURNS(0, kvp_recover(ctx, &options, &report, &error));
	return report;
}

struct kvp_recovery_report recover(struct kvp_registrar *registrar)
{
	struct kvp_recovery_report report;
	struct kvp_ctx *ctx = open_ctx();

	report = recover_by(ctx, registrar);
	kvp_close(ctx);
	return report;
}

const char *recovered(const struct kvp_recovery_report *report)
{
	static char text[400];
	size_t used = 0;

	text[0] = 0;
	for (unsigned int i = 0; i <= KVP_RECOVERY_POOL_FAILED; i++) {
		if (!report->count[i])
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%" PRIu32,
					 used ? " " : "", kvp_recovery_action_name(i),
					 report->count[i]);
	}
	return text;
}

void matrix_clean(void)
{
	/* A case that has not failed has seen to it that neither is there. */
	if (!cases_end())
		return;
	shell("for pool in " SYSFS "/target* " SYSFS "/draft*; do "
	      "[ ! -e $pool ] || kvpoolctl destroy --force ${pool##*/} >/dev/null; done; "
	      "rm -f " JOURNALS "/*.journal");
}
