// SPDX-License-Identifier: GPL-2.0
/*
 * A registrar of one's own. It registers with verbs, as kvp_registrar_verbs()
 * does, and refuses one call, as a device that is full would.
 */
#include <errno.h>

#include "demo.h"

static int flaky_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static int flaky_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	struct flaky *flaky = arg;
	struct ibv_mr *mr;

	if (++flaky->calls == flaky->fail_at) {
		if (flaky->at_failure)
			flaky->at_failure();
		return -ENOMEM;
	}
	if (flaky->held == sizeof(flaky->order) / sizeof(flaky->order[0]))
		return -ENOSPC;
	mr = ibv_reg_mr(flaky->devices[device].pd, chunk->addr, chunk->length,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		return -errno;
	flaky->order[flaky->held++] = mr;
	*cookie = mr;
	return 0;
}

static int flaky_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	struct flaky *flaky = arg;

	(void)device;
	(void)chunk;
	if (!flaky->held || flaky->order[--flaky->held] != cookie)
		flaky->in_reverse = 0;
	flaky->undone++;
	return -ibv_dereg_mr(cookie);
}

static const char *flaky_name(void *arg, uint32_t device)
{
	const struct flaky *flaky = arg;

	return ibv_get_device_name(flaky->devices[device].context->device);
}

int flaky_new(struct flaky *flaky, uint32_t devices, struct kvp_registrar **registrar)
{
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops),
		.limits = flaky_limits,
		.register_chunk = flaky_register,
		.unregister_chunk = flaky_unregister,
		.device_name = flaky_name,
		.pins = 1,
	};

	flaky->in_reverse = 1;
	return kvp_registrar_new(&ops, flaky, devices, registrar);
}
