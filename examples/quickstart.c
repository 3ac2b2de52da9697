// SPDX-License-Identifier: GPL-2.0
/* quickstart DEVICE: a pool, mapped, and registered with an RDMA device. */
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

/* The first device when `name` is NULL. */
static struct ibv_pd *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **at = list;
	struct ibv_context *context;

	while (at && *at && name && strcmp(ibv_get_device_name(*at), name))
		at++;
	context = at && *at ? ibv_open_device(*at) : NULL;
	if (list)
		ibv_free_device_list(list);
	return context ? ibv_alloc_pd(context) : NULL;
}

int main(int argc, char **argv)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct ibv_pd *pd = open_device(argc > 1 ? argv[1] : NULL);
	struct kvp_registration *registration;
	struct kvp_registrar *registrar;
	struct kvp_buffer buffer = { 0 };
	struct kvp_error error = { 0 };
	struct kvp_list *list = NULL;
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	struct ibv_mr *mr;

	if (!pd)
		return fprintf(stderr, "quickstart: can't open the RDMA device\n"), 1;
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
	return 0;
}
