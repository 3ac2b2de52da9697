// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handles of pools: a descriptor, and one mapping of it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "netlink.h"

/* How often a name is looked up anew when the pool it named was replaced meanwhile. */
#define NAME_TRIES 8

struct kvp_pool *kvp_pool_new(struct kvp_ctx *ctx)
{
	struct kvp_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->ctx = ctx;
	pool->fd = -1;
	pthread_mutex_init(&pool->lock, NULL);
	return pool;
}

KVP_EXPORT void kvp_pool_close(struct kvp_pool *pool)
{
	if (!pool)
		return;
	kvp_pool_unmap(pool);
	if (pool->fd >= 0)
		close(pool->fd);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

static int open_failed(int err, uint32_t id, uint64_t generation, enum kvp_access access,
		       struct kvp_error *error)
{
	const char *advice = NULL, *why = "";

	switch (err) {
	case -ENOENT:
		why = ": no pool has the id";
		advice = "see what pools there are: kvpoolctl list";
		break;
	case -ESTALE:
		why = ": another generation has the id now";
		advice = "the pool ended: find the one that took its place by its name";
		break;
	case -EACCES:
		why = ": its uid, gid and mode forbid it";
		advice = "see its owner and mode by kvpoolctl list; its owner may change them";
		break;
	case -ENODEV:
		why = ": it is an orphan or was destroyed";
		advice = "create another pool";
		break;
	case -EMFILE:
		why = ": no descriptor is left to the process";
		advice = "raise the limit of open files (ulimit -n)";
		break;
	case -ENOTTY:
		why = ": the control node does not know the command";
		advice = "check the control path of the context, and the release of the module";
		break;
	}
	return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL, advice,
			"open pool %" PRIu32 " of generation %" PRIu64 " for %s%s", id, generation,
			access == KVP_ACCESS_WRITE ? "reading and writing" : "reading", why);
}

/* What of the module's answer the handle relies on. */
static bool info_sane(const struct kvpool_info *info)
{
	return info->id && info->generation && info->length &&
	       info->length <= info->mapped_length &&
	       memchr(info->domain, '\0', sizeof(info->domain));
}

/* Learn from the descriptor what the handle must know. */
static int identify(struct kvp_pool *pool, struct kvp_error *error)
{
	struct kvpool_info info = { .size = sizeof(info) };
	int err;

	if (ioctl(pool->fd, KVPOOL_IOC_INFO, &info)) {
		err = -errno;
		if (err == -ENOTTY)
			return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL,
					"give a descriptor of a pool",
					"the descriptor is no pool's");
		return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL, NULL,
				"ask what pool the descriptor is of");
	}
	if (!info_sane(&info))
		return kvp_fail(error, -EPROTO, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"install the module and the library of one release",
				"the module describes pool %u of generation %llu wrongly: length %llu, mapped length %llu",
				info.id, info.generation, info.length, info.mapped_length);
	pool->id = info.id;
	pool->generation = info.generation;
	pool->length = info.length;
	pool->mapped_length = info.mapped_length;
	memcpy(pool->domain, info.domain, sizeof(pool->domain));
	return 0;
}

int kvp_pool_attach(struct kvp_pool *pool, uint32_t id, uint64_t generation,
		    enum kvp_access access, struct kvp_error *error)
{
	struct kvpool_open request = {
		.size = sizeof(request),
		.flags = access == KVP_ACCESS_WRITE ? KVPOOL_OPEN_WRITE : 0,
		.generation = generation,
		.id = id,
		.fd = -1,
	};
	int err;

	if (ioctl(pool->ctx->control, KVPOOL_IOC_OPEN, &request))
		return open_failed(-errno, id, generation, access, error);
	pool->fd = request.fd;
	pool->writable = access == KVP_ACCESS_WRITE;
	err = identify(pool, error);
	if (err)
		return err;
	if (pool->id != id || pool->generation != generation)
		return kvp_fail(error, -EPROTO, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"install the module and the library of one release",
				"the module opened pool %" PRIu32 " of generation %" PRIu64
				" instead of pool %" PRIu32 " of generation %" PRIu64, pool->id,
				pool->generation, id, generation);
	return 0;
}

KVP_EXPORT int kvp_pool_open(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			     enum kvp_access access, struct kvp_pool **result,
			     struct kvp_error *error)
{
	struct kvp_pool *pool = kvp_pool_new(ctx);
	int err;

	if (!pool)
		return kvp_no_memory(error, KVP_PHASE_REQUEST);
	err = kvp_pool_attach(pool, id, generation, access, error);
	if (err) {
		kvp_pool_close(pool);
		return err;
	}
	*result = pool;
	return 0;
}

KVP_EXPORT int kvp_pool_open_name(struct kvp_ctx *ctx, const char *name, enum kvp_access access,
				  struct kvp_pool **pool, struct kvp_error *error)
{
	struct kvp_pool_info info;
	unsigned int tries;
	int err = 0;

	/* Between the two steps the pool may end and another take its name. */
	for (tries = 0; tries < NAME_TRIES; tries++) {
		err = kvp_pool_find_name(ctx, name, &info, error);
		if (err)
			return err;
		err = kvp_pool_open(ctx, info.id, info.generation, access, pool, error);
		if (err != -ESTALE && err != -ENOENT)
			return err;
	}
	return err;
}

KVP_EXPORT int kvp_pool_open_fd(struct kvp_ctx *ctx, int fd, struct kvp_pool **result,
				struct kvp_error *error)
{
	struct kvp_pool *pool = kvp_pool_new(ctx);
	int flags, err;

	if (!pool)
		return kvp_no_memory(error, KVP_PHASE_REQUEST);
	pool->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	flags = pool->fd < 0 ? -1 : fcntl(pool->fd, F_GETFL);
	if (flags < 0) {
		err = kvp_fail(error, -errno, KVP_PHASE_REQUEST, KVP_NONE, NULL, NULL,
			       "descriptor %d can't be duplicated", fd);
		goto fail;
	}
	pool->writable = (flags & O_ACCMODE) == O_RDWR;
	err = identify(pool, error);
	if (err)
		goto fail;
	*result = pool;
	return 0;
fail:
	kvp_pool_close(pool);
	return err;
}

KVP_EXPORT int kvp_pool_fd(const struct kvp_pool *pool)
{
	return pool->fd;
}

KVP_EXPORT uint32_t kvp_pool_id(const struct kvp_pool *pool)
{
	return pool->id;
}

KVP_EXPORT uint64_t kvp_pool_generation(const struct kvp_pool *pool)
{
	return pool->generation;
}

KVP_EXPORT uint64_t kvp_pool_length(const struct kvp_pool *pool)
{
	return pool->length;
}

static int map_failed(const struct kvp_pool *pool, int err, struct kvp_error *error)
{
	const char *advice = NULL;

	if (err == -ENOMEM)
		advice = "look at the limits of address space (ulimit -v) and of mappings "
			 "(vm.max_map_count)";
	else if (err == -ENODEV)
		advice = "the pool was destroyed: create another";
	return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL, advice,
			"map %" PRIu64 " bytes of pool %" PRIu32 " of generation %" PRIu64,
			pool->mapped_length, pool->id, pool->generation);
}

static int map_locked(struct kvp_pool *pool, bool write, struct kvp_error *error)
{
	const int protection = PROT_READ | (write ? PROT_WRITE : 0);
	void *addr;

	if (pool->addr) {
		/* The address stays the same when a reader of the handle asks for more. */
		if (write && !pool->map_writable) {
			if (mprotect(pool->addr, (size_t)pool->mapped_length, protection))
				return map_failed(pool, -errno, error);
			pool->map_writable = true;
		}
		return 0;
	}
	if (pool->mapped_length > SIZE_MAX)
		return map_failed(pool, -ENOMEM, error);
	/* No address is asked for: only the kernel knows what allows 2 MiB entries. */
	addr = mmap(NULL, (size_t)pool->mapped_length, protection, MAP_SHARED, pool->fd, 0);
	if (addr == MAP_FAILED)
		return map_failed(pool, -errno, error);
	pool->addr = addr;
	pool->map_writable = write;
	kvp_mappings_add(&pool->ctx->mappings, pool);
	return 0;
}

KVP_EXPORT int kvp_pool_map(struct kvp_pool *pool, enum kvp_access access, void **addr,
			    struct kvp_error *error)
{
	int err;

	if (access == KVP_ACCESS_WRITE && !pool->writable)
		return kvp_fail(error, -EACCES, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"open it with KVP_ACCESS_WRITE",
				"pool %" PRIu32 " of generation %" PRIu64 " is open read only",
				pool->id, pool->generation);
	pthread_mutex_lock(&pool->lock);
	err = map_locked(pool, access == KVP_ACCESS_WRITE, error);
	if (!err)
		*addr = pool->addr;
	pthread_mutex_unlock(&pool->lock);
	return err;
}

KVP_EXPORT int kvp_pool_unmap(struct kvp_pool *pool)
{
	int err = 0;

	pthread_mutex_lock(&pool->lock);
	if (pool->addr) {
		/* Before, so that nobody is told of it when other memory is there already. */
		kvp_mappings_remove(&pool->ctx->mappings, pool);
		if (munmap(pool->addr, (size_t)pool->mapped_length)) {
			err = -errno;
			kvp_mappings_add(&pool->ctx->mappings, pool);
		} else {
			pool->addr = NULL;
		}
	}
	pthread_mutex_unlock(&pool->lock);
	return err;
}
