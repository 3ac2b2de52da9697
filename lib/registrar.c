// SPDX-License-Identifier: LGPL-2.1-or-later
/* What registers memory: the caller's own functions, for the most part. */
#include <stdlib.h>

#include "transaction.h"

KVP_EXPORT int kvp_registrar_new(const struct kvp_registrar_ops *ops, void *arg, uint32_t devices,
				 struct kvp_registrar **registrar)
{
	struct kvp_registrar_ops known;
	struct kvp_registrar *new;
	int err;

	if (!registrar)
		return -EINVAL;
	*registrar = NULL;
	if (!ops || !devices)
		return -EINVAL;
	err = kvp_options_copy(&known, sizeof(known), ops);
	if (err)
		return err;
	if (!known.limits || !known.register_chunk || !known.unregister_chunk ||
	    !known.device_name)
		return -EINVAL;
	/* In this process's own memory nothing may go on when the caller has gone on. */
	if (!known.external && (known.register_batch || known.unregister_batch || known.time_limit))
		return -EINVAL;
	/* One thread of its own makes the calls that have a time limit. */
	if (known.concurrent && known.time_limit)
		return -EINVAL;
	/* Recovery finds what serves an external store by its name. */
	if (known.name ? !kvp_name_valid(known.name) : known.external)
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	if (known.time_limit) {
		err = kvp_worker_new(known.time_limit, &new->worker);
		if (err) {
			free(new);
			return err;
		}
	}
	pthread_mutex_init(&new->turn, NULL);
	if (known.name)
		strcpy(new->name, known.name);
	known.name = NULL;	/* the caller's, who may free it */
	new->ops = known;
	new->arg = arg;
	new->devices = devices;
	*registrar = new;
	return 0;
}

static void end(void *data)
{
	struct kvp_registrar *registrar = data;

	if (registrar->release)
		registrar->release(registrar->arg);
	pthread_mutex_destroy(&registrar->turn);
	free(registrar);
}

KVP_EXPORT void kvp_registrar_free(struct kvp_registrar *registrar)
{
	if (!registrar)
		return;
	if (registrar->worker)
		kvp_worker_free(registrar->worker, end, registrar);
	else
		end(registrar);
}

const char *kvp_registrar_device(const struct kvp_registrar *registrar, uint32_t device)
{
	const char *name = registrar->ops.device_name(registrar->arg, device);

	return name ? name : "";
}

int kvp_returned(int value, bool *foreign)
{
	/* Above this, the kernel's and the C library's errnos end. */
	const int last_errno = 4095;

	*foreign = value > 0 || value < -last_errno;
	return *foreign ? -EREMOTEIO : value;
}
