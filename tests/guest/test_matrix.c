// SPDX-License-Identifier: GPL-2.0
/*
 * The matrix of an inference server's registrations, as processes: what works.
 * Rows R0 to R4 of the analysis of sglang 28873; a store of its own process
 * stands for the standalone client, target and draft pools are filled and checked.
 */
#include "matrix.h"

#define BOTH(state) "draft0:" state " target0:" state
#define TARGET "target0+0 target0+1 target0+2"
#define DRAFT "draft0+0 draft0+1 draft0+2"

static struct store store;

/* EAGLE on, external store off: the two host pools are there, and nothing else. */
static void R0_store_off(void)
{
	struct rank rank;

	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	STATE(rank.ctx, BOTH("ALLOCATED"), NULL, "", 0);
	CHECK(part_is_filled(&rank.target) && part_is_filled(&rank.draft));
	part_is_hidden(&rank.target);
	part_is_hidden(&rank.draft);
	EQUAL(mr_count(), 0);
	rank_close(&rank);
	STATE(NULL, "", NULL, "", 0);
}

/* Another process reads the bytes of a page by its span, which came as a text. */
static void read_by_name(void *arg)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;
	struct kvp_span span;
	void *addr;

	EQUAL(kvp_span_parse(arg, &span), 0);
	RETURNS(0, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &pool, &addr, &error));
	CHECK(filled(addr, PAGE_BYTES, 4711));
}

/* Standalone store, target only: registered, written out, read back, seen by a third process. */
static void R1_target_at_store(void)
{
	char text[KVP_SPAN_TEXT_SIZE];
	struct kvp_span span, unregistered;
	struct rank rank;

	store_start(&store);
	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	rank_use(&rank, store_registrar(&store, STORE_OBJECT, 0));
	EQUAL(part_register(&rank, &rank.target), 0);
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
	part_is_hidden(&rank.draft);

	span = page_span(&rank, &rank.target, 1);
	unregistered = page_span(&rank, &rank.draft, 1);
	EQUAL(store_put(&store, "prefix-1", &span), 0);
	memset(rank.target.addr + BLOCK, 0, PAGE_BYTES);
	EQUAL(store_get(&store, "prefix-1", &span), 0);
	CHECK(part_is_filled(&rank.target));
	/* It reaches nothing that was not registered. */
	EQUAL(store_put(&store, "prefix-2", &unregistered), -EFAULT);

	fill(rank.target.addr + BLOCK, PAGE_BYTES, 4711);
	EQUAL(kvp_span_format(&span, text), 0);
	EQUAL(wait_child(child(read_by_name, text)), 0);

	rank_close(&rank);
	STATE(NULL, "", &store, "", 0);
	store_end(&store);
}

/* The server of R2: dies with its pools registered at both devices. */
static void embedded(int line)
{
	struct ibv_pd *pds[DEVICES];
	struct rank rank;

	rank_open(&rank, 0, KVP_LIFETIME_PERSISTENT);
	open_devices(pds);
	rank_use(&rank, verbs_registrar(pds, RDMA_ACCESS));
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), 0);
	tell(line);
	await(line);
}

static void R2_embedded_and_restarted(void)
{
	struct kvp_recovery_report report;
	struct ibv_pd *pds[DEVICES];
	struct rank rank;
	pid_t pid;
	int line;

	pid = partner(embedded, &line);
	await(line);
	STATE(NULL, "draft0:COMMITTED/3 target0:COMMITTED/3", NULL, "", 1);
	EQUAL(mr_count(), 2 * PAGES * DEVICES);
	kill_now(pid);
	/* The kernel has ended the regions, and kept the pools. */
	EQUAL(mr_count(), 0);
	report = recover(NULL);
	SAME(recovered(&report), "removed=1 entry-gone=12 pool-left=2");

	rank_claim(&rank, 0);
	CHECK(part_is_filled(&rank.target) && part_is_filled(&rank.draft));
	open_devices(pds);
	rank_use(&rank, verbs_registrar(pds, RDMA_ACCESS));
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:COMMITTED/3 target0:COMMITTED/3", NULL, "", 1);
	EQUAL(mr_count(), 2 * PAGES * DEVICES);
	CHECK(part_is_filled(&rank.target) && part_is_filled(&rank.draft));
	rank_close(&rank);
	EQUAL(mr_count(), 0);
	STATE(NULL, "", NULL, "", 0);
}

/* The case of sglang 28873: ready, nothing refused, the draft in the domain of the target. */
static void R3_target_and_draft_at_store(void)
{
	struct kvp_pool_info info;
	struct kvp_buffer wrong;
	struct kvp_span span;
	struct rank rank;
	struct part mmapped;

	store_start(&store);
	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	rank_use(&rank, store_registrar(&store, STORE_BATCH, 0));
	EQUAL(part_register(&rank, &rank.target), 0);

	/* The draft as it was in the issue: refused by name before the store is asked. */
	store_calls(&store);
	mmapped = (struct part){ .role = "draft" };
	wrong = (struct kvp_buffer){ .length = BLOCK };
	wrong.addr = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(wrong.addr != MAP_FAILED);
	mmapped.list = list_of(&wrong, 1);
	EQUAL(part_register(&rank, &mmapped), -ENOTSUP);
	SAYS("private anonymous memory, not a pool of domain kv");
	part_is_hidden(&mmapped);
	SAME(store_calls(&store), "");
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
	kvp_list_free(mmapped.list);

	/* And as it should be. */
	EQUAL(part_register(&rank, &rank.draft), 0);
	SAME(store_calls(&store), "+draft0+0 +draft0+1 +draft0+2");
	STATE(rank.ctx, BOTH("COMMITTED"), &store, TARGET " " DRAFT, 1);
	info = query(rank.draft.pool);
	SAME(info.domain, query(rank.target.pool).domain);
	CHECK(rank.draft.page_get(&rank.draft, 2) == rank.draft.addr + 2 * BLOCK);
	/* What the store sees at the draft's span is the draft's. */
	span = page_span(&rank, &rank.draft, 2);
	EQUAL(store_put(&store, "draft-2", &span), 0);
	memset(rank.draft.addr + 2 * BLOCK, 0, PAGE_BYTES);
	EQUAL(store_get(&store, "draft-2", &span), 0);
	CHECK(part_is_filled(&rank.draft) && part_is_filled(&rank.target));

	/* Detached while it runs: the draft goes, the target stays. */
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
	rank_close(&rank);
	STATE(NULL, "", &store, "", 0);
	store_end(&store);
}

/* ------------------------------------------------------------------ two ranks */

/* What a rank tells of itself. */
struct rank_report {
	uint64_t generations[2];	/* target, draft */
	int result;	/* of registering the draft */
};

struct seen {
	const struct rank *rank;
	uint32_t count;
};

/* A pool that is found under this rank's number is one of its own. */
static int look(const struct kvp_pool_info *info, void *arg)
{
	struct seen *seen = arg;
	const struct rank *rank = seen->rank;

	if (info->rank != rank->number)
		return 0;
	seen->count++;
	CHECK(info->generation == kvp_pool_generation(rank->target.pool) ||
	      info->generation == kvp_pool_generation(rank->draft.pool));
	EQUAL(info->owner_pid, getpid());
	return 0;
}

/* The entries of a registration are of this pool, each at its place. */
static void entries_are_of(const struct part *part)
{
	EQUAL(kvp_registration_count(part->registration), PAGES);
	for (uint32_t i = 0; i < PAGES; i++) {
		const struct kvp_entry *entry = kvp_registration_entry(part->registration, i);

		EQUAL(entry->chunk.span.generation, kvp_pool_generation(part->pool));
		EQUAL(entry->chunk.span.offset, i * BLOCK);
		CHECK(entry->chunk.addr == part->addr + i * BLOCK);
	}
}

static void run_rank(int line, uint32_t number)
{
	struct rank_report report = { .result = 0 };
	struct seen seen = { 0 };
	struct rank rank;

	rank_open(&rank, number, KVP_LIFETIME_OWNER);
	rank_use(&rank, store_registrar(&store, STORE_OBJECT, 0));
	EQUAL(part_register(&rank, &rank.target), 0);
	tell(line);
	/* With whatever fault the test has set for the draft. */
	await(line);
	report.result = part_register(&rank, &rank.draft);
	if (report.result)
		part_is_hidden(&rank.draft);
	else
		entries_are_of(&rank.draft);
	entries_are_of(&rank.target);
	RETURNS(0, kvp_verify(rank.ctx, &error));
	report.generations[0] = kvp_pool_generation(rank.target.pool);
	report.generations[1] = kvp_pool_generation(rank.draft.pool);
	PUT(line, report);
	await(line);
	seen.rank = &rank;
	RETURNS(0, kvp_pool_each(rank.ctx, look, &seen, &error));
	EQUAL(seen.count, 2);
	CHECK(part_is_filled(&rank.target) && part_is_filled(&rank.draft));
	tell(line);
	await(line);
	rank_close(&rank);
}

static void rank_0(int line)
{
	run_rank(line, 0);
}

static void rank_1(int line)
{
	run_rank(line, 1);
}

/* Of the journals in the directory, entries that are open of a pool of this generation. */
static long journal_entries(pid_t pid, uint64_t generation)
{
	return shell_number("kvpoolctl --json journal show /run/kvpool/%d-*.journal | "
			    "grep -o '\"generation\":%" PRIu64 "' | wc -l", (int)pid, generation);
}

static void R4_two_ranks(void)
{
	struct rank_report reports[2];
	struct kvp_registrar *registrar;
	struct kvp_recovery_report report;
	pid_t pids[2];
	int lines[2];

	store_start(&store);
	pids[0] = partner(rank_0, &lines[0]);
	await(lines[0]);
	pids[1] = partner(rank_1, &lines[1]);
	await(lines[1]);
	tell(lines[0]);
	GET(lines[0], reports[0]);
	EQUAL(reports[0].result, 0);
	STATE(NULL, "draft0:COMMITTED draft1:ALLOCATED target0:COMMITTED target1:COMMITTED",
	      &store, "target0+0 target0+1 target0+2 target1+0 target1+1 target1+2 "
	      "draft0+0 draft0+1 draft0+2", 2);

	/* The draft of rank 1 fails at its last buffer. Rank 0 keeps what it has. */
	store_calls(&store);
	store_fault(&store, (struct store_fault){ .op = STORE_REGISTER, .how = STORE_RETURNS,
						  .at = PAGES - 1, .code = -ENOSPC });
	tell(lines[1]);
	GET(lines[1], reports[1]);
	EQUAL(reports[1].result, -ENOSPC);
	SAME(store_calls(&store),
	     "+draft1+0 +draft1+1 +draft1+2!-28 -draft1+1 -draft1+0");
	STATE(NULL, "draft0:COMMITTED draft1:FAILED target0:COMMITTED target1:COMMITTED",
	      &store, "target0+0 target0+1 target0+2 target1+0 target1+1 target1+2 "
	      "draft0+0 draft0+1 draft0+2", 2);
	for (int i = 0; i < 2; i++) {
		tell(lines[i]);
		await(lines[i]);
		for (int j = 0; j < 2; j++) {
			CHECK(reports[0].generations[i] != reports[1].generations[j]);
			EQUAL(journal_entries(pids[1 - i], reports[i].generations[j]), 0);
			CHECK(journal_entries(pids[i], reports[i].generations[j]) > 0);
		}
	}

	/* Rank 1 dies, and is recovered: what rank 0 has is untouched. */
	kill_now(pids[1]);
	store_calls(&store);
	registrar = store_registrar(&store, STORE_OBJECT, 0);
	report = recover(registrar);
	kvp_registrar_free(registrar);
	SAME(recovered(&report), "alive=1 removed=1 entry-undone=3 pool-gone=2");
	SAME(store_calls(&store), "-target1+2 -target1+1 -target1+0");
	STATE(NULL, "draft0:COMMITTED target0:COMMITTED", &store,
	      "target0+0 target0+1 target0+2 draft0+0 draft0+1 draft0+2", 1);

	tell(lines[0]);
	EQUAL(wait_child(pids[0]), 0);
	STATE(NULL, "", &store, "", 0);
	store_end(&store);
}

int main(void)
{
	ROW(R0_store_off);
	ROW(R1_target_at_store);
	ROW(R2_embedded_and_restarted);
	ROW(R3_target_and_draft_at_store);
	ROW(R4_two_ranks);
	return cases_end();
}
