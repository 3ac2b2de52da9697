// SPDX-License-Identifier: LGPL-2.1-or-later
/* The context: a session of the module, and requests made through it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "netlink.h"

int kvp_no_memory(struct kvp_error *error, enum kvp_phase phase)
{
	return kvp_fail(error, -ENOMEM, phase, KVP_NONE, NULL, NULL,
			"the process has no memory for the library");
}

int kvp_need_write(const struct kvp_ctx *ctx, struct kvp_error *error)
{
	if (!ctx->read_only)
		return 0;
	return kvp_fail(error, -EACCES, KVP_PHASE_REQUEST, KVP_NONE, NULL,
			"open the context without read_only", "the context is read only");
}

static int open_control(const struct kvp_options *options, struct kvp_ctx *ctx,
			struct kvp_error *error)
{
	const char *path = options->control_path ? options->control_path : KVPOOL_CONTROL_PATH;
	const char *advice = NULL;
	int err;

	ctx->read_only = options->read_only;
	ctx->control = open(path, (ctx->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (ctx->control >= 0)
		return 0;
	err = -errno;
	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		advice = "load the module: modprobe kvpool";
		break;
	case -EACCES:
	case -EPERM:
		advice = "add the user to the group kvpool, or give the group of the node access "
			 "to it";
		break;
	case -EMFILE:
		advice = "raise the limit of open files (ulimit -n)";
		break;
	}
	return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, NULL, advice,
			"can't open %.180s for %s", path,
			ctx->read_only ? "reading" : "reading and writing");
}

KVP_EXPORT int kvp_open(const struct kvp_options *given, struct kvp_ctx **result,
			struct kvp_error *error)
{
	struct kvp_options options;
	struct kvp_family family;
	struct kvp_ctx *ctx;
	int err;

	err = kvp_options_copy(&options, sizeof(options), given);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, NULL,
				"set the options up with KVP_INIT(struct kvp_options)",
				"kvp_options of %zu bytes, the library knows %zu",
				given->struct_size, sizeof(options));
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return kvp_no_memory(error, KVP_PHASE_CONNECT);
	err = kvp_policy_start(ctx, &options, error);
	if (!err)
		err = open_control(&options, ctx, error);
	if (err) {
		free(ctx);
		return err;
	}
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->states_lock, NULL);
	kvp_mappings_init(&ctx->mappings);
	err = kvp_family_find(&ctx->nl, &family, error);
	if (err) {
		kvp_close(ctx);
		return err;
	}
	ctx->family = family.id;
	err = kvp_log_init(&ctx->log, options.journal_dir, error);
	if (err) {
		kvp_close(ctx);
		return err;
	}
	*result = ctx;
	return 0;
}

KVP_EXPORT void kvp_close(struct kvp_ctx *ctx)
{
	if (!ctx)
		return;
	kvp_log_free(&ctx->log);
	kvp_owned_free(ctx);
	kvp_report_free(ctx);
	kvp_nl_close(&ctx->nl);
	close(ctx->control);
	kvp_mappings_free(&ctx->mappings);
	pthread_mutex_destroy(&ctx->states_lock);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

struct kvp_owned *kvp_owned_find(const struct kvp_ctx *ctx, uint32_t id, uint64_t generation)
{
	struct kvp_owned *owned;

	for (owned = ctx->owned; owned; owned = owned->next)
		if (owned->id == id && owned->generation == generation)
			break;
	return owned;
}

void kvp_owned_free(struct kvp_ctx *ctx)
{
	struct kvp_owned *owned;

	while ((owned = ctx->owned)) {
		ctx->owned = owned->next;
		free(owned);
	}
}

void kvp_ask_start(const struct kvp_ctx *ctx, struct kvp_request *request, uint8_t command)
{
	kvp_request_start(request, ctx->family, command, KVPOOL_FAMILY_VERSION);
}

int kvp_ask(struct kvp_ctx *ctx, struct kvp_request *request,
	    int (*answer)(const struct nlmsghdr *message, void *arg), void *arg,
	    struct kvp_reply *reply)
{
	int err;

	pthread_mutex_lock(&ctx->lock);
	err = kvp_nl_request(&ctx->nl, request, answer, arg, reply);
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

int kvp_ask_dump(struct kvp_ctx *ctx, struct kvp_request *request, struct kvp_dump *dump,
		 struct kvp_reply *reply)
{
	int err;

	pthread_mutex_lock(&ctx->lock);
	err = kvp_nl_dump(&ctx->nl, request, dump, reply);
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

static const char *advice_of(int err)
{
	switch (err) {
	case -ENOENT:
		return "see what pools there are: kvpoolctl list";
	case -ESTALE:
		return "the pool ended and its id was used again: find the pool anew";
	case -EPROTO:
		return "install the module and the library of one release";
	case -EAGAIN:
	case -ENOBUFS:
		return "call again";
	case -EMFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return NULL;
	}
}

int kvp_ask_fail(struct kvp_error *error, int err, const struct kvp_reply *reply,
		 const char *advice, const char *format, ...)
{
	char what[224];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL,
			advice ? advice : advice_of(err), "%s%s%s", what,
			reply->text[0] ? ": " : "", reply->text);
}
