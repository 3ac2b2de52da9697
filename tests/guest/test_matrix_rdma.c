// SPDX-License-Identifier: GPL-2.0
/*
 * The matrix of an inference server's registrations: row R5, a prefill and two
 * decode processes, which transfer pages over soft-RoCE and have everything
 * registered at a store too. One is killed, starts again and finds its cache.
 */
#include "matrix.h"

#include <sys/socket.h>

enum { PREFILL, DECODE_1, DECODE_2, PROCESSES };

/* Soft-RoCE over dummy interfaces reaches no other device: all have the same one. */
#define DEVICE "rxe0"

static struct store store;

/* ------------------------------------------------------------------ a process */

static struct rank rank;
static struct ibv_pd *pd;
static struct rdma_connection connections[PROCESSES];	/* with each other process */

/* How its pages are reached: what a process tells the one that it is connected with. */
struct offer {
	struct rdma_end end;
	struct rdma_remote target[PAGES], draft[PAGES];
};

static struct offer offers[PROCESSES];

/* What the test asks of it. */
enum order {
	CONNECT,	/* takes and gives an offer */
	SEND,		/* page `page` of target and draft, to the same place there */
	FETCH,		/* the same in the other direction */
	CHECK_PAGE,	/* it has the bytes of process `peer` */
	KEEP,		/* page `page` of both in the store */
	BRING_BACK,	/* from the store, over other bytes */
	END,
};

struct request {
	enum order order;
	uint32_t peer;
	uint32_t page;
};

static struct ibv_mr *region(const struct part *part, uint32_t page)
{
	return kvp_entry_mr(part->registration,
			    kvp_registration_find(part->registration, page, 1, 0, 0));
}

static void fill_remotes(const struct part *part, struct rdma_remote *remotes)
{
	for (uint32_t i = 0; i < PAGES; i++)
		remotes[i] = (struct rdma_remote){ (uintptr_t)part->addr + i * BLOCK,
						   region(part, i)->rkey };
}

static void connect_with(int line, uint32_t peer)
{
	struct rdma_connection *connection = &connections[peer];
	struct offer own;

	rdma_open(connection, pd);
	own.end = connection->end;
	fill_remotes(&rank.target, own.target);
	fill_remotes(&rank.draft, own.draft);
	PUT(line, own);
	GET(line, offers[peer]);
	rdma_connect(connection, &offers[peer].end);
}

static void transfer(const struct part *part, const struct rdma_remote *remote,
		     enum ibv_wr_opcode opcode, const struct request *request)
{
	EQUAL(rdma_transfer(&connections[request->peer], opcode, region(part, request->page),
			    part->addr + request->page * BLOCK, PAGE_BYTES, &remote[request->page]),
	      IBV_WC_SUCCESS);
}

static void check_page(const struct part *part, const struct request *request)
{
	const struct part theirs = { .role = part->role, .rank = request->peer };

	CHECK(filled(part->addr + request->page * BLOCK, PAGE_BYTES,
		     page_seed(&theirs, request->page)));
}

/* Its rank and role are in the key, so that ranks don't meet. */
static void key_of(const struct part *part, uint32_t page, char key[STORE_KEY])
{
	snprintf(key, STORE_KEY, "%s%" PRIu32 "/%" PRIu32, part->role, part->rank, page);
}

static void keep(const struct part *part, uint32_t page)
{
	const struct kvp_span span = page_span(&rank, part, page);
	char key[STORE_KEY];

	key_of(part, page, key);
	EQUAL(store_put(&store, key, &span), 0);
}

static void bring_back(const struct part *part, uint32_t page)
{
	const struct kvp_span span = page_span(&rank, part, page);
	char key[STORE_KEY];

	memset(part->addr + page * BLOCK, 0, PAGE_BYTES);
	key_of(part, page, key);
	EQUAL(store_get(&store, key, &span), 0);
}

static void serve(int line)
{
	const struct part *target = &rank.target, *draft = &rank.draft;
	struct request request;

	for (;;) {
		const struct offer *theirs;

		GET(line, request);
		theirs = &offers[request.peer];
		switch (request.order) {
		case CONNECT:
			connect_with(line, request.peer);
			break;
		case SEND:
			transfer(target, theirs->target, IBV_WR_RDMA_WRITE, &request);
			transfer(draft, theirs->draft, IBV_WR_RDMA_WRITE, &request);
			break;
		case FETCH:
			transfer(target, theirs->target, IBV_WR_RDMA_READ, &request);
			transfer(draft, theirs->draft, IBV_WR_RDMA_READ, &request);
			break;
		case CHECK_PAGE:
			check_page(target, &request);
			check_page(draft, &request);
			break;
		case KEEP:
			keep(target, request.page);
			keep(draft, request.page);
			break;
		case BRING_BACK:
			bring_back(target, request.page);
			bring_back(draft, request.page);
			break;
		case END:
			rank_close(&rank);
			return;
		}
		RETURNS(0, kvp_verify(rank.ctx, &error));
		tell(line);
	}
}

static void run(int line, uint32_t number, bool again)
{
	struct kvp_registrar *at_store = store_registrar(&store, STORE_BATCH, 0);
	struct kvp_registrar *at_device = NULL;
	struct kvp_recovery_report report;

	if (again) {
		/* Who takes the place of a dead process ends what that has left, and only that. */
		report = recover(at_store);
		SAME(recovered(&report), "alive=2 removed=1 entry-gone=6 entry-undone=6 pool-left=2");
		rank_claim(&rank, number);
	} else {
		rank_open(&rank, number, KVP_LIFETIME_PERSISTENT);
	}
	pd = rdma_pd(DEVICE);
	RETURNS(0, kvp_registrar_verbs(&pd, 1, RDMA_ACCESS, &at_device, &error));
	rank_use(&rank, at_store);
	rank_use(&rank, at_device);
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), 0);
	tell(line);
	serve(line);
}

static void run_prefill(int line)
{
	run(line, PREFILL, false);
}

static void run_decode_1(int line)
{
	run(line, DECODE_1, false);
}

static void run_decode_1_again(int line)
{
	run(line, DECODE_1, true);
}

static void run_decode_2(int line)
{
	run(line, DECODE_2, false);
}

/* -------------------------------------------------------------------- the test */

static pid_t pids[PROCESSES];
static int lines[PROCESSES];

static void start(uint32_t process, void (*run_it)(int line))
{
	pids[process] = partner(run_it, &lines[process]);
	await(lines[process]);
}

static void ask(uint32_t process, enum order order, uint32_t peer, uint32_t page)
{
	const struct request request = { order, peer, page };

	PUT(lines[process], request);
	if (order != CONNECT)
		await(lines[process]);
}

/* Each gets the other's offer. */
static void connect_both(uint32_t one, uint32_t other)
{
	struct offer offer_of_one, offer_of_other;

	ask(one, CONNECT, other, 0);
	ask(other, CONNECT, one, 0);
	GET(lines[one], offer_of_one);
	GET(lines[other], offer_of_other);
	PUT(lines[one], offer_of_other);
	PUT(lines[other], offer_of_one);
	await(lines[one]);
	await(lines[other]);
}

static void end(uint32_t process)
{
	const struct request request = { .order = END };

	PUT(lines[process], request);
	EQUAL(wait_child(pids[process]), 0);
	close(lines[process]);
}

#define HELD(n) "target" n "+0 target" n "+1 target" n "+2 draft" n "+0 draft" n "+1 draft" n "+2"
#define POOL(name) name ":COMMITTED/3"
#define ALL POOL("draft0") " " POOL("draft1") " " POOL("draft2") " " \
	POOL("target0") " " POOL("target1") " " POOL("target2")

static void R5_prefill_and_two_decodes(void)
{
	store_start(&store);
	start(PREFILL, run_prefill);
	start(DECODE_1, run_decode_1);
	start(DECODE_2, run_decode_2);
	STATE(NULL, ALL, &store, HELD("0") " " HELD("1") " " HELD("2"), 3);
	EQUAL(mr_count(), PROCESSES * 2 * PAGES);

	/* Page 0 of the prefill to both; page 1 of the second decode to the prefill. */
	connect_both(PREFILL, DECODE_1);
	connect_both(PREFILL, DECODE_2);
	ask(PREFILL, SEND, DECODE_1, 0);
	ask(PREFILL, SEND, DECODE_2, 0);
	ask(PREFILL, FETCH, DECODE_2, 1);
	ask(DECODE_1, CHECK_PAGE, PREFILL, 0);
	ask(DECODE_2, CHECK_PAGE, PREFILL, 0);
	ask(PREFILL, CHECK_PAGE, DECODE_2, 1);
	ask(DECODE_1, CHECK_PAGE, DECODE_1, 1);
	for (uint32_t page = 0; page < PAGES; page++)
		ask(DECODE_1, KEEP, 0, page);

	/* One is killed. Nothing of the others changes. */
	kill_now(pids[DECODE_1]);
	close(lines[DECODE_1]);
	STATE(NULL, POOL("draft0") " draft1:COMMITTED " POOL("draft2") " " POOL("target0")
	      " target1:COMMITTED " POOL("target2"), &store,
	      HELD("0") " " HELD("1") " " HELD("2"), 3);
	EQUAL(mr_count(), (PROCESSES - 1) * 2 * PAGES);
	ask(PREFILL, SEND, DECODE_2, 2);
	ask(DECODE_2, CHECK_PAGE, PREFILL, 2);

	/* It starts again, and has its pages: in its pools, and in the store. */
	start(DECODE_1, run_decode_1_again);
	STATE(NULL, ALL, &store, HELD("0") " " HELD("2") " " HELD("1"), 3);
	EQUAL(mr_count(), PROCESSES * 2 * PAGES);
	ask(DECODE_1, CHECK_PAGE, PREFILL, 0);
	ask(DECODE_1, CHECK_PAGE, DECODE_1, 1);
	ask(DECODE_1, CHECK_PAGE, DECODE_1, 2);
	ask(DECODE_1, BRING_BACK, 0, 0);
	ask(DECODE_1, CHECK_PAGE, PREFILL, 0);
	ask(DECODE_1, BRING_BACK, 0, 1);
	ask(DECODE_1, CHECK_PAGE, DECODE_1, 1);
	connect_both(PREFILL, DECODE_1);
	ask(PREFILL, SEND, DECODE_1, 2);
	ask(DECODE_1, CHECK_PAGE, PREFILL, 2);

	/* All end in good order, and nothing is left. */
	end(DECODE_2);
	STATE(NULL, POOL("draft0") " " POOL("draft1") " " POOL("target0") " " POOL("target1"),
	      &store, HELD("0") " " HELD("1"), 2);
	end(PREFILL);
	end(DECODE_1);
	STATE(NULL, "", &store, "", 0);
	EQUAL(mr_count(), 0);
	store_end(&store);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
}

int main(void)
{
	ROW(R5_prefill_and_two_decodes);
	return cases_end();
}
