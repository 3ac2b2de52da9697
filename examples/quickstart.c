// SPDX-License-Identifier: GPL-2.0
/* A pool, mapped, and registered with the first RDMA device. */
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <kvpool.h>

static int failed(const char *what, const struct kvp_error *error)
{
	char line[640];

	kvp_error_format(error, line, sizeof(line));
	fprintf(stderr, "quickstart: %s: %s\n", what, line);
	return 1;
}

int main(void)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *device = devices && *devices ? ibv_open_device(*devices) : NULL;
	struct ibv_pd *pd = device ? ibv_alloc_pd(device) : NULL;
	struct kvp_registration *registration;
	struct kvp_registrar *registrar;
	struct kvp_buffer buffer = { 0 };
	struct kvp_error error = { 0 };
	struct kvp_list *list = NULL;
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	struct ibv_mr *mr;

	if (!pd)
		return fprintf(stderr, "quickstart: no RDMA device\n"), 1;
	if (kvp_open(NULL, &ctx, &error))
		return failed("open", &error);
	options.domain = "kv";
	options.name = "quickstart";
	options.length = 64 << 20;
	if (kvp_pool_create(ctx, &options, &pool, &error))
		return failed("create", &error);
	if (kvp_pool_map(pool, KVP_ACCESS_WRITE, &buffer.addr, &error))
		return failed("map", &error);
	buffer.length = options.length;
	memset(buffer.addr, 42, buffer.length);

	/* All buffers of the list at all devices of the registrar, or none. */
	if (kvp_registrar_verbs(&pd, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
				&registrar, &error))
		return failed("registrar", &error);
	if (kvp_list_new(KVP_EMPTY_REJECT, &list) || kvp_list_add(list, &buffer))
		return fprintf(stderr, "quickstart: no memory\n"), 1;
	if (kvp_list_seal(list, &error) ||
	    kvp_register(ctx, "kv", list, &registrar, 1, NULL, &registration, &error))
		return failed("register", &error);
	mr = kvp_entry_mr(registration, kvp_registration_find(registration, 0, 0, 0, 0));
	printf("registered %zu bytes: lkey 0x%x, rkey 0x%x\n", mr->length, mr->lkey, mr->rkey);

	if (kvp_unregister(ctx, &registration, &error))
		return failed("unregister", &error);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	kvp_pool_close(pool);
	kvp_close(ctx);
	ibv_dealloc_pd(pd);
	ibv_close_device(device);
	ibv_free_device_list(devices);
	return 0;
}
