// SPDX-License-Identifier: GPL-2.0
/* What a transaction costs beside a bare loop of ibv_reg_mr(), and what its journal does. */
#include "bench.h"

#define MOST 10000

static struct kvp_ctx *journaled, *plain;
static struct kvp_registrar *registrar;
static struct ibv_pd *pd;
static struct kvp_buffer buffers[MOST];
static struct ibv_mr *mrs[MOST];
static struct kvp_list *list;
static struct kvp_registration *registration;
static uint32_t count;
static char dir[] = "/run/bench-XXXXXX";

static struct kvp_ctx *open_with(const char *journal_dir)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_ctx *ctx;

	options.journal_dir = journal_dir;
	RETURNS(0, kvp_open(&options, &ctx, &error));
	return ctx;
}

static void with(struct kvp_ctx *ctx)
{
	RETURNS(0, kvp_register(ctx, "bench", list, &registrar, 1, NULL, &registration, &error));
}

static void without(struct kvp_ctx *ctx)
{
	RETURNS(0, kvp_unregister(ctx, &registration, &error));
}

static void register_journaled(void)
{
	with(journaled);
}

static void unregister_journaled(void)
{
	without(journaled);
}

static void register_plain(void)
{
	with(plain);
}

static void unregister_plain(void)
{
	without(plain);
}

static void loop_register(void)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		mrs[i] = ibv_reg_mr(pd, buffers[i].addr, buffers[i].length, RDMA_ACCESS);
		CHECK(mrs[i]);
	}
}

static void loop_unregister(void)
{
	uint32_t i = count;

	while (i--)
		EQUAL(ibv_dereg_mr(mrs[i]), 0);
}

static void check_all(void)
{
	RETURNS(0, kvp_check(plain, "bench", buffers, count, NULL, &error));
}

static void rows(uint32_t buffer_count, uint64_t length)
{
	const struct side registering[] = {
		{ "transaction with journal", NULL, register_journaled, unregister_journaled },
		{ "transaction without journal", NULL, register_plain, unregister_plain },
		{ "loop of ibv_reg_mr", NULL, loop_register, loop_unregister },
	};
	const struct side unregistering[] = {
		{ "transaction with journal", register_journaled, unregister_journaled, NULL },
		{ "transaction without journal", register_plain, unregister_plain, NULL },
		{ "loop of ibv_dereg_mr", loop_register, loop_unregister, NULL },
	};
	const struct side checking = { "kvp_check", NULL, check_all, NULL };
	char *base;
	uint32_t i;

	CHECK(mkdtemp(dir));
	journaled = open_with(dir);
	plain = open_with("");
	pd = rdma_pd("rxe0");
	RETURNS(0, kvp_registrar_verbs(&pd, 1, RDMA_ACCESS, &registrar, &error));
	count = buffer_count;
	base = map_pool(make_pool(plain, "bench", count * length));
	for (i = 0; i < count; i++)
		buffers[i] = (struct kvp_buffer){ .addr = base + i * length, .length = length };
	list = list_of(buffers, count);
	bench_row("check buffers", count, &checking, 1, 9);
	bench_row("register buffers", count, registering, 3, 9);
	bench_row("unregister buffers", count, unregistering, 3, 9);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	kvp_close(journaled);
	EQUAL(rmdir(dir), 0);
}

static void one(void)
{
	rows(1, MIB);
}

static void ten(void)
{
	rows(10, MIB);
}

static void hundred(void)
{
	rows(100, MIB);
}

static void thousand(void)
{
	rows(1000, MIB);
}

static void ten_thousand(void)
{
	rows(10000, 65536);
}

int main(void)
{
	RUN(ten);
	RUN(hundred);
	if (bench_size(1, 0)) {
		RUN(one);
		RUN(thousand);
		RUN(ten_thousand);
	}
	return cases_end();
}
