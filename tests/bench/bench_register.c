// SPDX-License-Identifier: GPL-2.0
/* Registering at one device, beside other memory; and at several, beside a loop. */
#include "memory.h"

#define MOST_DEVICES 4
#define BUFFERS 8

static struct ibv_pd *pds[MOST_DEVICES];
static uint32_t devices;
static uint64_t size;
static void *of_pool, *of_hugetlb, *of_shm;

/* ----------------------------------------------------------------- one device */

static void once(void *addr)
{
	struct ibv_mr *mr = ibv_reg_mr(pds[0], addr, size, RDMA_ACCESS);

	CHECK(mr);
	EQUAL(ibv_dereg_mr(mr), 0);
}

static void pool_once(void)
{
	once(of_pool);
}

static void hugetlb_once(void)
{
	once(of_hugetlb);
}

static void shm_once(void)
{
	once(of_shm);
}

static void one_device(uint64_t length)
{
	const struct side sides[] = {
		{ "pool", NULL, pool_once, NULL },
		{ "hugetlb memfd", NULL, hugetlb_once, NULL },
		{ "4 KiB shm", NULL, shm_once, NULL },
	};

	size = length;
	pds[0] = rdma_pd("rxe0");
	hugetlb_reserve(size);
	of_pool = map_pool(new_pool(open_ctx(), size));
	of_hugetlb = hugetlb_map(size, MAP_POPULATE);
	of_shm = shm_map(size, MAP_POPULATE);
	touch(of_pool, size);
	bench_row("register and deregister, bytes", size, sides, 3, 9);
	unmap(of_hugetlb, size);
	unmap(of_shm, size);
	hugetlb_reserve(0);
}

/* ------------------------------------------------------------ several devices */

static struct kvp_ctx *ctx;
static struct kvp_registrar *registrar;
static struct kvp_registration *registration;
static struct kvp_buffer buffers[BUFFERS];
static struct kvp_list *list;
static struct ibv_mr *mrs[BUFFERS * MOST_DEVICES];

static void transaction(uint32_t threads)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);

	options.threads = threads;
	RETURNS(0, kvp_register(ctx, "bench", list, &registrar, 1, &options, &registration,
				&error));
}

static void by_many(void)
{
	transaction(devices);
}

static void by_one(void)
{
	transaction(1);
}

static void undo(void)
{
	RETURNS(0, kvp_unregister(ctx, &registration, &error));
}

static void loop(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BUFFERS; i++)
		for (uint32_t device = 0; device < devices; device++) {
			mrs[n] = ibv_reg_mr(pds[device], buffers[i].addr, buffers[i].length,
					    RDMA_ACCESS);
			CHECK(mrs[n++]);
		}
}

static void loop_undo(void)
{
	for (uint32_t n = BUFFERS * devices; n--;)
		EQUAL(ibv_dereg_mr(mrs[n]), 0);
}

static void many_devices(uint32_t count)
{
	const struct side sides[] = {
		{ "transaction, a thread a device", NULL, by_many, undo },
		{ "transaction, one thread", NULL, by_one, undo },
		{ "loop of ibv_reg_mr", NULL, loop, loop_undo },
	};
	struct kvp_options options = KVP_INIT(struct kvp_options);
	const uint64_t length = bench_size(256, 4) * MIB;
	char name[] = "rxe0", *base;

	options.journal_dir = "";
	RETURNS(0, kvp_open(&options, &ctx, &error));
	devices = count;
	for (uint32_t i = 0; i < count; i++) {
		name[3] = (char)('0' + i);
		pds[i] = rdma_pd(name);
	}
	RETURNS(0, kvp_registrar_verbs(pds, (int)count, RDMA_ACCESS, &registrar, &error));
	base = map_pool(new_pool(ctx, BUFFERS * length));
	touch(base, BUFFERS * length);
	for (uint32_t i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){ .addr = base + i * length, .length = length };
	list = list_of(buffers, BUFFERS);
	bench_row("register at devices, number", count, sides, 3, 9);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
}

static void bytes_64_mib(void)
{
	one_device(64 * MIB);
}

static void bytes_256_mib(void)
{
	one_device(256 * MIB);
}

static void bytes_1_gib(void)
{
	one_device(1024 * MIB);
}

static void devices_1(void)
{
	many_devices(1);
}

static void devices_2(void)
{
	many_devices(2);
}

static void devices_4(void)
{
	many_devices(4);
}

int main(void)
{
	RUN(bytes_64_mib);
	if (bench_size(1, 0)) {
		RUN(bytes_256_mib);
		RUN(bytes_1_gib);
	}
	RUN(devices_1);
	RUN(devices_2);
	/* `make test` has two. */
	if (bench_size(1, 0))
		RUN(devices_4);
	return cases_end();
}
