// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registrar of an external store whose functions are in a shared object. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kvpool_store.h"
#include "transaction.h"

struct loaded {
	void *handle;			/* of dlopen() */
	const struct kvp_store *ops;	/* in it */
	void *store;
	bool open;
	int code;			/* what opening returned */
	char name[KVP_NAME_SIZE];
	char config[];
};

static int loaded_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static int loaded_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	const struct loaded *loaded = arg;
	uint64_t number = 0;
	int ret;

	(void)device;
	ret = loaded->ops->register_buffer(loaded->store, chunk, &number);
	*cookie = (void *)(uintptr_t)number;
	return ret;
}

static int loaded_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk,
			     void *cookie)
{
	const struct loaded *loaded = arg;

	(void)device;
	return loaded->ops->unregister_buffer(loaded->store, chunk, (uintptr_t)cookie);
}

static int no_memory(uint32_t count, int *results)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		results[i] = -ENOMEM;
	return -ENOMEM;
}

static int loaded_register_batch(void *arg, uint32_t device, const struct kvp_chunk *chunks,
				 uint32_t count, void **cookies, int *results)
{
	uint64_t *numbers = calloc(count, sizeof(*numbers));
	const struct loaded *loaded = arg;
	uint32_t i;
	int ret;

	(void)device;
	if (!numbers)
		return no_memory(count, results);
	ret = loaded->ops->register_batch(loaded->store, chunks, count, numbers, results);
	for (i = 0; i < count; i++)
		cookies[i] = (void *)(uintptr_t)numbers[i];
	free(numbers);
	return ret;
}

static int loaded_unregister_batch(void *arg, uint32_t device, const struct kvp_chunk *chunks,
				   uint32_t count, void *const *cookies, int *results)
{
	uint64_t *numbers = calloc(count, sizeof(*numbers));
	const struct loaded *loaded = arg;
	uint32_t i;
	int ret;

	(void)device;
	if (!numbers)
		return no_memory(count, results);
	for (i = 0; i < count; i++)
		numbers[i] = (uintptr_t)cookies[i];
	ret = loaded->ops->unregister_batch(loaded->store, chunks, count, numbers, results);
	free(numbers);
	return ret;
}

static const char *loaded_name(void *arg, uint32_t device)
{
	const struct loaded *loaded = arg;

	(void)device;
	return loaded->name;
}

/* ---------------------------------------------------------------- open, close */

static void work_open(void *data)
{
	struct loaded *loaded = data;

	if (loaded->ops->open)
		loaded->code = loaded->ops->open(loaded->config[0] ? loaded->config + 1 : NULL,
						 &loaded->store);
	loaded->open = !loaded->code;
}

static void loaded_release(void *arg)
{
	struct loaded *loaded = arg;

	if (loaded->open && loaded->ops->close)
		loaded->ops->close(loaded->store);
	dlclose(loaded->handle);
	free(loaded);
}

/* The registrar has it, and frees it. */
static void keep(void *data)
{
	(void)data;
}

static int fail_open(const struct loaded *loaded, const struct kvp_load_options *options, int ret,
		     struct kvp_error *error)
{
	const char *advice = "see whether the store runs, and what its documentation says";
	bool foreign;
	int err = kvp_returned(ret, &foreign);

	if (foreign)
		return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, loaded->name, advice,
				"%.120s: opening the store returned code %d", options->path, ret);
	return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, loaded->name, advice,
			"%.160s: can't open the store", options->path);
}

static int open_store(struct kvp_registrar *registrar, struct loaded *loaded,
		      const struct kvp_load_options *options, struct kvp_error *error)
{
	if (!registrar->worker)
		work_open(loaded);
	else if (kvp_worker_do(registrar->worker, work_open, loaded, keep))
		return kvp_fail(error, -ETIMEDOUT, KVP_PHASE_CONNECT, KVP_NONE, loaded->name,
				"see whether the store runs, or allow more time",
				"%.120s: the store was not open within %" PRIu64 " ms",
				options->path, options->time_limit / 1000000);
	return loaded->code ? fail_open(loaded, options, loaded->code, error) : 0;
}

/* ---------------------------------------------------------------------- load */

static int __attribute__((format(printf, 4, 5)))
fail_load(const struct kvp_load_options *options, int err, struct kvp_error *error,
	  const char *format, ...)
{
	char what[160];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, NULL,
			"see kvpool_store.h for what a shared object has to provide",
			"%.80s: %s", options->path, what);
}

static const char *name_of(const struct kvp_load_options *options, const struct kvp_store *store)
{
	return options->name ? options->name : store->name;
}

static int check_store(const struct kvp_load_options *options, const struct kvp_store *store,
		       struct kvp_error *error)
{
	const char *name;

	if (store->version != KVP_STORE_VERSION || store->reserved)
		return fail_load(options, -EPROTO, error,
				 "its kvp_store is of version %" PRIu32 ", the library's is %d",
				 store->version, KVP_STORE_VERSION);
	if (!store->register_buffer || !store->unregister_buffer)
		return fail_load(options, -EPROTO, error,
				 "its kvp_store has no register_buffer or no unregister_buffer");
	name = name_of(options, store);
	if (!name || !kvp_name_valid(name))
		return fail_load(options, -EINVAL, error, "'%.80s' is no name of a registrar",
				 name ? name : "");
	return 0;
}

static int find_store(const struct kvp_load_options *options, void **handle,
		      const struct kvp_store **store, struct kvp_error *error)
{
	const char *why;

	*handle = dlopen(options->path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle) {
		why = dlerror();
		fail_load(options, -ENOENT, error, "%s", why ? why : "it can't be loaded");
		return -ENOENT;
	}
	*store = dlsym(*handle, "kvp_store");
	if (!*store) {
		fail_load(options, -ENOENT, error, "it exports no kvp_store");
		return -ENOENT;
	}
	return check_store(options, *store, error);
}

static struct loaded *loaded_new(const struct kvp_load_options *options, void *handle,
				 const struct kvp_store *store, const char *name)
{
	/* A mark before it tells an empty text from none. */
	const size_t room = options->config ? strlen(options->config) + 2 : 1;
	struct loaded *loaded = calloc(1, sizeof(*loaded) + room);

	if (!loaded)
		return NULL;
	loaded->handle = handle;
	loaded->ops = store;
	strcpy(loaded->name, name);
	if (options->config) {
		loaded->config[0] = '=';
		strcpy(loaded->config + 1, options->config);
	}
	return loaded;
}

/* The handle is the registrar's, or closed. */
static int make(const struct kvp_load_options *options, void *handle,
		const struct kvp_store *store, struct kvp_registrar **registrar,
		struct kvp_error *error)
{
	const char *name = name_of(options, store);
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops),
		.limits = loaded_limits,
		.register_chunk = loaded_register,
		.unregister_chunk = loaded_unregister,
		.register_batch = store->register_batch ? loaded_register_batch : NULL,
		.unregister_batch = store->unregister_batch ? loaded_unregister_batch : NULL,
		.device_name = loaded_name,
		.name = name,
		.external = 1,
		.time_limit = options->time_limit,
	};
	struct loaded *loaded;
	int err;

	loaded = loaded_new(options, handle, store, name);
	err = loaded ? kvp_registrar_new(&ops, loaded, 1, registrar) : -ENOMEM;
	if (err) {
		free(loaded);
		dlclose(handle);
		return fail_load(options, err, error, "no memory or no thread for the registrar");
	}
	(*registrar)->release = loaded_release;
	err = open_store(*registrar, loaded, options, error);
	if (!err)
		return 0;
	/* Which closes the shared object as well. */
	kvp_registrar_free(*registrar);
	*registrar = NULL;
	return err;
}

KVP_EXPORT int kvp_registrar_load(const struct kvp_load_options *given,
				  struct kvp_registrar **registrar, struct kvp_error *error)
{
	const struct kvp_store *store = NULL;
	struct kvp_load_options options;
	void *handle;
	int err;

	if (!registrar)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CONNECT, KVP_NONE, NULL, NULL,
				"no place for the registrar was given");
	*registrar = NULL;
	err = kvp_options_copy(&options, sizeof(options), given);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, NULL,
				"set them up with KVP_INIT(struct kvp_load_options)",
				"kvp_load_options of %zu bytes, the library knows %zu",
				given->struct_size, sizeof(options));
	if (!options.path || !options.path[0])
		return kvp_fail(error, -EINVAL, KVP_PHASE_CONNECT, KVP_NONE, NULL, NULL,
				"no path of a shared object was given");
	err = find_store(&options, &handle, &store, error);
	if (!err)
		return make(&options, handle, store, registrar, error);
	if (handle)
		dlclose(handle);
	return err;
}
