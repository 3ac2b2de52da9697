// SPDX-License-Identifier: GPL-2.0
/*
 * state_buffers DEVICE: the state tensors of a model some of whose layers have
 * none, as in sglang PR 35689: 294 buffers, of which 42 are empty. A device
 * refuses a buffer of no bytes, and one refused buffer fails all of them. So the
 * empty ones are dealt with where the list is made, and the caller's parallel
 * lists are brought into line with what is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "demo.h"

#define BUFFERS		294
#define EVERY		7	/* each seventh is empty: 42 of 294 */
#define LENGTH		4096

static char *base;

static struct kvp_list *make_list(enum kvp_empty empty)
{
	struct kvp_list *list;
	uint32_t i;
	int err = kvp_list_new(empty, &list);

	for (i = 0; i < BUFFERS && !err; i++) {
		struct kvp_buffer buffer = { .addr = base + i * LENGTH, .length = LENGTH };

		if (i % EVERY == EVERY - 1)
			buffer = (struct kvp_buffer){ 0 };
		err = kvp_list_add(list, &buffer);
	}
	if (err) {
		errno = -err;
		die_errno("list");
	}
	return list;
}

/* The caller's own list, which runs parallel to the buffers: here, their layers. */
static uint32_t aligned(const struct kvp_list *list)
{
	uint32_t layers[BUFFERS], count, right = 0, i;
	const struct kvp_buffer *buffers = kvp_list_buffers(list, &count);
	const uint32_t *index = kvp_list_index(list, &count);

	for (i = 0; i < BUFFERS; i++)
		layers[i] = i;
	for (i = 0; i < count; i++)
		right += base + layers[index[i]] * LENGTH == (char *)buffers[i].addr;
	return right;
}

int main(int argc, char **argv)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_registration *registration;
	struct kvp_registrar *registrar;
	struct rdma_device device = { 0 };
	struct kvp_error error = { 0 };
	struct kvp_pool *pool;
	struct kvp_list *list;
	struct kvp_ctx *ctx;
	char text[640];
	uint32_t empty;

	if (argc != 2) {
		fprintf(stderr, "usage: state_buffers DEVICE\n");
		return 2;
	}
	rdma_open(&device, argv[1]);
	options.domain = "kv";
	options.role = "state";
	options.length = BUFFERS * LENGTH;
	if (kvp_open(NULL, &ctx, &error) || kvp_pool_create(ctx, &options, &pool, &error) ||
	    kvp_pool_map(pool, KVP_ACCESS_WRITE, (void **)&base, &error) ||
	    kvp_registrar_verbs(&device.pd, 1, IBV_ACCESS_LOCAL_WRITE, &registrar, &error))
		die("state pool", &error);

	/* Either the empty ones are an error, with their places, before any device is asked... */
	list = make_list(KVP_EMPTY_REJECT);
	if (!kvp_list_seal(list, &error)) {
		fprintf(stderr, "state_buffers: empty buffers were taken\n");
		return 1;
	}
	kvp_list_empty(list, &empty);
	kvp_error_format(&error, text, sizeof(text));
	printf("rejected empty=%u first=%u: %s\n", empty, error.index, text);
	kvp_list_free(list);

	/* ... or they are left out, and the rest is registered. */
	list = make_list(KVP_EMPTY_SKIP);
	if (kvp_list_seal(list, &error) ||
	    kvp_register(ctx, "kv", list, &registrar, 1, NULL, &registration, &error))
		die("state buffers", &error);
	printf("registered count=%u aligned=%u\n", kvp_registration_count(registration),
	       aligned(list));

	if (kvp_unregister(ctx, &registration, &error))
		die("unregister", &error);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	rdma_close(&device);
	kvp_pool_close(pool);
	kvp_close(ctx);
	return 0;
}
