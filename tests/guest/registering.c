// SPDX-License-Identifier: GPL-2.0
#include "registering.h"

static const char *const names[DEVICES] = { "rxe0", "rxe1" };

void open_devices(struct ibv_pd *pds[DEVICES])
{
	for (int i = 0; i < DEVICES; i++)
		pds[i] = rdma_pd(names[i]);
}

struct kvp_registrar *verbs_registrar(struct ibv_pd *const pds[DEVICES], int access)
{
	struct kvp_registrar *registrar = NULL;

	RETURNS(0, kvp_registrar_verbs(pds, DEVICES, access, &registrar, &error));
	return registrar;
}

static int small_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	const struct small *small = arg;

	*max_length = small->max_length[device];
	*max_count = small->max_count;
	return 0;
}

static int small_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	struct small *small = arg;

	small->calls++;
	if (small->max_length[device] && chunk->length > small->max_length[device])
		return -EINVAL;
	*cookie = ibv_reg_mr(small->pds[device], chunk->addr, chunk->length, RDMA_ACCESS);
	return *cookie ? 0 : -errno;
}

static int small_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	(void)arg;
	(void)device;
	(void)chunk;
	return -ibv_dereg_mr(cookie);
}

static const char *small_name(void *arg, uint32_t device)
{
	(void)arg;
	return device ? "small1" : "small0";
}

struct kvp_registrar *small_registrar(struct small *small)
{
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops),
		.limits = small_limits,
		.register_chunk = small_register,
		.unregister_chunk = small_unregister,
		.device_name = small_name,
		.pins = 1,
	};
	struct kvp_registrar *registrar;

	open_devices(small->pds);
	EQUAL(kvp_registrar_new(&ops, small, DEVICES, &registrar), 0);
	return registrar;
}

struct kvp_list *list_of(const struct kvp_buffer *buffers, uint32_t count)
{
	struct kvp_list *list = NULL;

	EQUAL(kvp_list_new(KVP_EMPTY_REJECT, &list), 0);
	for (uint32_t i = 0; i < count; i++)
		EQUAL(kvp_list_add(list, &buffers[i]), 0);
	RETURNS(0, kvp_list_seal(list, &error));
	return list;
}

struct kvp_registration *register_list(struct kvp_ctx *ctx, const char *domain,
				       const struct kvp_list *list,
				       struct kvp_registrar *registrar)
{
	struct kvp_registration *registration = NULL;

	RETURNS(0, kvp_register(ctx, domain, list, &registrar, 1, NULL, &registration, &error));
	CHECK(registration);
	return registration;
}

void unregister(struct kvp_ctx *ctx, struct kvp_registration *registration)
{
	RETURNS(0, kvp_unregister(ctx, &registration, &error));
	CHECK(!registration);
}

struct runs {
	char text[200];
	uint32_t blocks;
};

static int add_run(uint32_t first, uint32_t count, void *arg)
{
	struct runs *runs = arg;
	size_t used = strlen(runs->text);

	snprintf(runs->text + used, sizeof(runs->text) - used, "%s%" PRIu32 "+%" PRIu32,
		 used ? " " : "", first, count);
	runs->blocks += count;
	return 0;
}

void pins_are(struct kvp_ctx *ctx, struct kvp_pool *pool, const char *want)
{
	struct runs runs = { 0 };

	RETURNS(0, kvp_pool_pins(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), add_run, &runs,
				 &error));
	if (strcmp(runs.text, want))
		FAIL("pinned blocks are \"%s\", not \"%s\"", runs.text, want);
	EQUAL(query(pool).pinned_blocks, runs.blocks);
}

long mr_count(void)
{
	long count = 0;

	for (int i = 0; i < DEVICES; i++)
		count += rdma_mr_count(names[i]);
	return count;
}

long map_count(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	long lines = 0;
	int byte;

	CHECK(f);
	while ((byte = getc(f)) != EOF)
		lines += byte == '\n';
	fclose(f);
	return lines;
}
