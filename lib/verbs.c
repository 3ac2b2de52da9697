// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registrar of ibverbs: a memory region on each of several protection domains. */
#include <inttypes.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "transaction.h"

#define WRITE_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct domain {
	struct ibv_pd *pd;
	uint64_t max_length;
	uint64_t max_count;
	char name[64];
};

struct verbs {
	int access;
	struct domain domains[];
};

static int verbs_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	const struct verbs *verbs = arg;

	*max_length = verbs->domains[device].max_length;
	*max_count = verbs->domains[device].max_count;
	return 0;
}

static int verbs_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	const struct verbs *verbs = arg;
	int access = verbs->access;
	struct ibv_mr *mr;

	if (chunk->flags & KVP_BUFFER_READ_ONLY)
		access &= ~WRITE_ACCESS;
	errno = 0;
	mr = ibv_reg_mr(verbs->domains[device].pd, chunk->addr, chunk->length, access);
	/* A provider that fails without a reason must not look like success. */
	if (!mr)
		return errno > 0 ? -errno : -EIO;
	*cookie = mr;
	return 0;
}

static int verbs_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	int ret;

	(void)arg;
	(void)device;
	(void)chunk;
	errno = 0;
	ret = ibv_dereg_mr(cookie);
	/* It returns an errno; some providers return -1 and set errno instead. */
	if (ret == -1)
		return errno > 0 ? -errno : -EIO;
	return ret > 0 ? -ret : ret;
}

static const char *verbs_device_name(void *arg, uint32_t device)
{
	const struct verbs *verbs = arg;

	return verbs->domains[device].name;
}

static int domain_init(struct domain *domain, struct ibv_pd *pd, uint32_t device,
		       struct kvp_error *error)
{
	struct ibv_device_attr attr = { 0 };
	const char *name;
	int ret;

	if (!pd || !pd->context)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"check what ibv_alloc_pd() returned",
				"protection domain %" PRIu32 " is NULL", device);
	domain->pd = pd;
	name = ibv_get_device_name(pd->context->device);
	snprintf(domain->name, sizeof(domain->name), "%s", name ? name : "");
	errno = 0;
	ret = ibv_query_device(pd->context, &attr);
	if (ret) {
		const int reason = ret > 0 ? ret : errno;

		return kvp_fail(error, reason > 0 ? -reason : -EIO, KVP_PHASE_CHECK, KVP_NONE,
				domain->name, "check the device with ibv_devinfo",
				"can't ask the device for its limits");
	}
	domain->max_length = attr.max_mr_size;
	domain->max_count = attr.max_mr > 0 ? (uint64_t)attr.max_mr : 0;
	return 0;
}

static int access_check(int access, struct kvp_error *error)
{
	/* What every verbs device refuses, with an EINVAL that says nothing. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"add IBV_ACCESS_LOCAL_WRITE",
				"access 0x%x has a remote write or atomic without local write",
				(unsigned int)access);
	return 0;
}

KVP_EXPORT int kvp_registrar_verbs(struct ibv_pd *const *pds, uint32_t count, int access,
				   struct kvp_registrar **registrar, struct kvp_error *error)
{
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops),
		.limits = verbs_limits,
		.register_chunk = verbs_register,
		.unregister_chunk = verbs_unregister,
		.device_name = verbs_device_name,
		/* On-demand paging pins nothing. */
		.pins = !(access & IBV_ACCESS_ON_DEMAND),
		.name = "verbs",
		/* ibv_reg_mr() and ibv_dereg_mr() may be called by any thread: ibv_reg_mr(3). */
		.concurrent = 1,
	};
	struct verbs *verbs;
	uint32_t i;
	int err;

	if (!registrar)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no place for the registrar was given");
	*registrar = NULL;
	if (!pds || !count)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no protection domains were given");
	err = access_check(access, error);
	if (err)
		return err;
	verbs = calloc(1, sizeof(*verbs) + (size_t)count * sizeof(verbs->domains[0]));
	if (!verbs)
		return kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no memory for %" PRIu32 " protection domains", count);
	verbs->access = access;
	for (i = 0; i < count; i++) {
		err = domain_init(&verbs->domains[i], pds[i], i, error);
		if (err)
			goto out;
	}
	err = kvp_registrar_new(&ops, verbs, count, registrar);
	if (err) {
		kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
			 "no memory for the registrar");
		goto out;
	}
	(*registrar)->verbs = true;
	(*registrar)->release = free;
	return 0;
out:
	free(verbs);
	return err;
}
