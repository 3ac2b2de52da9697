// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <stdlib.h>

#include "fake_registrar.h"

static int fake_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	struct fake_registrar *fake = arg;

	(void)device;
	fake->limits_calls++;
	*max_length = fake->max_length;
	*max_count = fake->max_count;
	return fake->limits_ret;
}

static void log_call(struct fake_registrar *fake, bool undo, uint32_t device,
		     const struct kvp_chunk *chunk)
{
	struct fake_registrar_call *call = &fake->calls[fake->call_count++];

	if (fake->call_count == FAKE_REGISTRAR_CALLS)
		abort();
	call->undo = undo;
	call->device = device;
	call->chunk = *chunk;
}

static int fake_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	struct fake_registrar *fake = arg;

	log_call(fake, false, device, chunk);
	if (++fake->register_calls == fake->fail_register)
		return fake->register_ret;
	*cookie = chunk->addr;
	fake->live++;
	return 0;
}

static int fake_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	struct fake_registrar *fake = arg;

	if (fake->during_unregister)
		fake->during_unregister();
	log_call(fake, true, device, chunk);
	if (cookie != chunk->addr)
		abort();
	fake->unregister_calls++;
	if (fake->fail_unregister && fake->unregister_calls >= fake->fail_unregister &&
	    fake->unregister_calls - fake->fail_unregister <= fake->fail_unregister_more)
		return fake->unregister_ret;
	fake->live--;
	return 0;
}

static const char *fake_device_name(void *arg, uint32_t device)
{
	static const char *const names[] = { "store0", "store1", "store2" };
	const struct fake_registrar *fake = arg;

	return fake->nameless ? NULL : names[device];
}

const struct kvp_registrar_ops fake_registrar_ops = {
	.struct_size = sizeof(fake_registrar_ops),
	.limits = fake_limits,
	.register_chunk = fake_register,
	.unregister_chunk = fake_unregister,
	.device_name = fake_device_name,
};

struct kvp_registrar *fake_registrar_new(struct fake_registrar *fake, uint32_t devices, int pins)
{
	struct kvp_registrar_ops ops = fake_registrar_ops;
	struct kvp_registrar *registrar;

	ops.pins = pins;
	ops.name = fake->name;
	ops.external = fake->name != NULL;
	return kvp_registrar_new(&ops, fake, devices, &registrar) ? NULL : registrar;
}
