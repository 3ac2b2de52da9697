// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bytes as what the kernel answers: datagrams of generic netlink, and structs of
 * ioctls. The first byte says which call of the library asks; answers follow, each
 * behind its length in two bytes. Sequence and port are added to those of a
 * message, so that 0 is right.
 *
 * Whatever comes, a call ends, with 0 or an error that says why; nothing is left
 * open; and the next call on the same context understands a right answer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* memfd_create() */
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/netlink.h"
#include "../../tools/format.h"
#include "fuzz.h"

#define FAMILY 0x21
#define PORT 4711
/* No call asks more often: a dump starts anew, a pool is looked up by its name again. */
#define REQUESTS_MAX 64

static struct {
	const uint8_t *data;
	size_t size;
	struct nlmsghdr request;
	unsigned int requests;
	int sockets, mappings;
	bool spoiled;		/* the first message of a datagram is for somebody else */
} kernel;

/* The next answer. */
static bool take(const uint8_t **bytes, size_t *size)
{
	size_t length;

	if (kernel.size < 2)
		return false;
	length = kernel.data[0] | (size_t)kernel.data[1] << 8;
	kernel.data += 2;
	kernel.size -= 2;
	if (length > kernel.size)
		length = kernel.size;
	*bytes = kernel.data;
	*size = length;
	kernel.data += length;
	kernel.size -= length;
	return true;
}

/* ------------------------------------------------------------------- netlink */

struct mnl_socket *__wrap_mnl_socket_open2(int bus, int flags);
int __wrap_mnl_socket_bind(struct mnl_socket *socket, unsigned int groups, pid_t pid);
int __wrap_mnl_socket_close(struct mnl_socket *socket);
int __wrap_mnl_socket_get_fd(const struct mnl_socket *socket);
unsigned int __wrap_mnl_socket_get_portid(const struct mnl_socket *socket);
ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *socket, const void *data, size_t size);
ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *socket, void *data, size_t size);
int __wrap_mnl_socket_setsockopt(const struct mnl_socket *socket, int type, void *data,
				 socklen_t size);

struct mnl_socket *__wrap_mnl_socket_open2(int bus, int flags)
{
	fuzz_assert(bus == NETLINK_GENERIC && flags & SOCK_CLOEXEC);
	kernel.sockets++;
	return malloc(1);
}

int __wrap_mnl_socket_bind(struct mnl_socket *socket, unsigned int groups, pid_t pid)
{
	return 0;
}

int __wrap_mnl_socket_close(struct mnl_socket *socket)
{
	kernel.sockets--;
	free(socket);
	return 0;
}

int __wrap_mnl_socket_get_fd(const struct mnl_socket *socket)
{
	return 3;
}

unsigned int __wrap_mnl_socket_get_portid(const struct mnl_socket *socket)
{
	return PORT;
}

int __wrap_mnl_socket_setsockopt(const struct mnl_socket *socket, int type, void *data,
				 socklen_t size)
{
	return 0;
}

ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *socket, const void *data, size_t size)
{
	fuzz_assert(kernel.sockets > 0 && ++kernel.requests < REQUESTS_MAX);
	memcpy(&kernel.request, data, sizeof(kernel.request));
	fuzz_assert(kernel.request.nlmsg_len == size && kernel.request.nlmsg_pid == PORT);
	return (ssize_t)size;
}

static void address(uint8_t *bytes, size_t size)
{
	struct nlmsghdr header;
	size_t at, length;

	for (at = 0; size - at >= sizeof(header); at += length) {
		memcpy(&header, bytes + at, sizeof(header));
		kernel.spoiled |= !at && (header.nlmsg_seq || header.nlmsg_pid);
		header.nlmsg_seq += kernel.request.nlmsg_seq;
		header.nlmsg_pid += kernel.request.nlmsg_pid;
		memcpy(bytes + at, &header, sizeof(header));
		length = NLMSG_ALIGN((size_t)header.nlmsg_len);
		if (length < sizeof(header) || length > size - at)
			return;
	}
}

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *socket, void *data, size_t size)
{
	const uint8_t *bytes;
	size_t length;

	if (!take(&bytes, &length)) {
		errno = ENOBUFS;
		return -1;
	}
	fuzz_assert(size == KVP_NL_BUFFER_SIZE);
	if (length > size) {
		errno = ENOSPC;		/* as libmnl does on MSG_TRUNC */
		return -1;
	}
	memset(data, 0xa5, size);
	memcpy(data, bytes, length);
	address(data, length);
	return (ssize_t)length;
}

/* --------------------------------------------------------- ioctls and mappings */

int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_ioctl(int fd, unsigned long command, ...);
void *__real_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *addr, size_t length, int protection, int flags, int fd, off_t offset);

/* The control node, and /proc/self/maps, which is empty. */
int __wrap_open(const char *path, int flags, ...)
{
	fuzz_assert(path && flags & O_CLOEXEC);
	return memfd_create("file", MFD_CLOEXEC);
}

int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));

/* What the kernel copies back is no longer than what it was given. */
static void copy_back(void *to, size_t size, const uint8_t **bytes, size_t *left)
{
	const size_t count = *left < size ? *left : size;

	memcpy(to, *bytes, count);
	*bytes += count;
	*left -= count;
}

static void resolved(struct kvpool_resolve *request, const uint8_t *bytes, size_t size)
{
	struct kvpool_segment *segments = (struct kvpool_segment *)(uintptr_t)request->segments;
	const uint32_t count = request->count;
	const uint64_t addr = request->addr;
	uint32_t i;

	copy_back(request, sizeof(*request), &bytes, &size);
	memset(segments, 0, count * sizeof(*segments));
	copy_back(segments, count * sizeof(*segments), &bytes, &size);
	/* They start where the request does, as answers have its sequence. */
	for (i = 0; i < count; i++)
		segments[i].addr += addr;
}

int __wrap_ioctl(int fd, unsigned long command, ...)
{
	const uint8_t *bytes;
	va_list args;
	void *argument;
	size_t size;
	int err;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	fuzz_assert(fcntl(fd, F_GETFD) >= 0 && ++kernel.requests < REQUESTS_MAX);
	if (!take(&bytes, &size) || !size) {
		errno = EFAULT;
		return -1;
	}
	size--;
	err = *bytes++;
	/* This one says in words why it failed. */
	if (command == KVPOOL_IOC_FILL)
		copy_back(argument, sizeof(struct kvpool_fill), &bytes, &size);
	if (err) {
		errno = err;
		return -1;
	}
	switch (command) {
	case KVPOOL_IOC_FILL:
		break;
	case KVPOOL_IOC_RESOLVE:
		resolved(argument, bytes, size);
		break;
	case KVPOOL_IOC_OPEN:
		copy_back(argument, sizeof(struct kvpool_open), &bytes, &size);
		((struct kvpool_open *)argument)->fd = memfd_create("pool", MFD_CLOEXEC);
		break;
	case KVPOOL_IOC_INFO:
		copy_back(argument, sizeof(struct kvpool_info), &bytes, &size);
		break;
	default:
		fuzz_assert(!"a command that the module has");
	}
	return 0;
}

void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	fuzz_assert(!addr && !offset && flags == MAP_SHARED && fcntl(fd, F_GETFD) >= 0);
	return __real_mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);
}

void *__wrap_mmap64(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("__wrap_mmap")));

/* --------------------------------------------------------------------- calls */

static void show_pool(const struct kvp_pool_info *info)
{
	FILE *out;

	fuzz_assert_text(info->name);
	fuzz_assert_text(info->domain);
	fuzz_assert_text(info->role);
	fuzz_assert_text(info->label);
	fuzz_assert(info->owned == 0 || info->owned == 1);
	fuzz_assert(kvp_state_name(info->state) &&
		    kvp_registration_state_name(info->registration));
	/* What names are made of is the module's promise; a label may hold anything. */
	if (!kvp_name_valid(info->name) || !kvp_name_valid(info->domain) ||
	    (info->role[0] && !kvp_name_valid(info->role)))
		return;
	out = fuzz_print_start();
	format_pool_text(out, info, NULL, 0);
	format_pool_line(out, info);
	format_list_text(out, info, 1);
	fuzz_print_end(out);
	out = fuzz_print_start();
	format_pool_json(out, info, NULL, 0);
	fuzz_print_end_json(out);
}

static int each_pool(const struct kvp_pool_info *info, void *arg)
{
	uint32_t *last = arg;

	fuzz_assert(info->id >= *last);
	*last = info->id;
	show_pool(info);
	return 0;
}

static int each_run(uint32_t first_block, uint32_t block_count, void *arg)
{
	(void)first_block;
	(void)block_count;
	(void)arg;
	return 0;
}

struct range {
	uint64_t at, end;
};

static int each_segment(const struct kvp_segment *segment, void *arg)
{
	struct range *range = arg;

	fuzz_assert(segment->addr == range->at && segment->length);
	fuzz_assert(segment->length <= range->end - range->at);
	fuzz_assert(segment->kind <= KVP_KIND_DEVICE);
	fuzz_assert_text(segment->path);
	fuzz_assert_text(segment->span.domain);
	fuzz_assert(segment->kind != KVP_KIND_POOL || segment->span.length == segment->length);
	range->at += segment->length;
	return 0;
}

static int find(struct kvp_ctx *ctx, bool by_name, struct kvp_error *error)
{
	struct kvp_pool_info info, untouched;
	int err;

	memset(&info, 0x5c, sizeof(info));
	untouched = info;
	err = by_name ? kvp_pool_find_name(ctx, "kv-target", &info, error) :
			kvp_pool_find(ctx, 12, 34, &info, error);
	if (err)
		fuzz_assert(!memcmp(&info, &untouched, sizeof(info)));
	else
		show_pool(&info);
	return err;
}

/* An open handle is whole, and ends without a trace. */
static void close_pool(struct kvp_pool *pool, int err)
{
	void *addr;

	if (err) {
		fuzz_assert(!pool);
		return;
	}
	fuzz_assert(pool && kvp_pool_fd(pool) >= 0 && kvp_pool_id(pool) && kvp_pool_length(pool));
	if (kvp_pool_length(pool) < (uint64_t)1 << 30)
		kvp_pool_map(pool, KVP_ACCESS_READ, &addr, NULL);
	kvp_pool_close(pool);
}

static int import(struct kvp_ctx *ctx, struct kvp_pool **pool, struct kvp_error *error)
{
	const struct kvp_span span = {
		.domain = "kv", .id = 12, .generation = 34, .offset = 4096, .length = 8192,
	};
	void *addr = NULL;
	int err = kvp_span_import(ctx, &span, KVP_ACCESS_READ, pool, &addr, error);

	if (!err)
		fuzz_assert(addr && span.offset + span.length <= kvp_pool_length(*pool));
	return err;
}

static int create(struct kvp_ctx *ctx, struct kvp_pool **pool, struct kvp_error *error)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);

	options.domain = "kv";
	options.length = KVP_BLOCK_SIZE;
	return kvp_pool_create(ctx, &options, pool, error);
}

static int change(struct kvp_ctx *ctx, struct kvp_error *error)
{
	struct kvp_pool_change to = KVP_INIT(struct kvp_pool_change);

	to.mask = KVP_SET_ROLE;
	to.role = "draft";
	return kvp_pool_set(ctx, 12, 34, &to, error);
}

static int monitor(struct kvp_error *error)
{
	struct kvp_monitor *monitor = NULL;
	uint64_t generation;
	enum kvp_event event;
	unsigned int i;
	uint32_t id;
	int err;

	err = kvp_monitor_open(&monitor, error);
	fuzz_assert(!err == !!monitor);
	for (i = 0; i < 16 && !err; i++) {
		/* Events are nobody's answer. */
		memset(&kernel.request, 0, sizeof(kernel.request));
		err = kvp_monitor_next(monitor, &event, &id, &generation, error);
		if (!err)
			fuzz_assert(event <= KVP_EVENT_CHANGE);
		else if (err == -EPROTO && kernel.size >= 2)
			/* The next datagram is whole by itself. */
			err = 0, fuzz_error_start(error);
	}
	kvp_monitor_close(monitor);
	kernel.spoiled = false;
	return err;
}

static int resolve(struct kvp_ctx *ctx, struct kvp_error *error)
{
	struct range range = { 0x7f0000000000, 0x7f0000000000 + 64 * KVP_BLOCK_SIZE };
	int err = kvp_resolve(ctx, (void *)(uintptr_t)range.at, range.end - range.at, each_segment,
			      &range, error);

	if (!err)
		fuzz_assert(range.at == range.end);
	return err;
}

static int name_span(struct kvp_ctx *ctx, struct kvp_error *error)
{
	struct kvp_span span = { .id = 0 }, again;
	char text[KVP_SPAN_TEXT_SIZE];
	int err = kvp_span_export(ctx, "kv", (void *)(uintptr_t)0x7f0000000000, 4096, &span, error);

	if (!err) {
		fuzz_assert(!strcmp(span.domain, "kv") && span.length == 4096);
		fuzz_assert(!kvp_span_format(&span, text) && !kvp_span_parse(text, &again));
	}
	return err;
}

static int call(struct kvp_ctx *ctx, unsigned int which, struct kvp_error *error)
{
	struct kvp_pool *pool = NULL;
	struct kvp_ctx *other = NULL;
	struct kvp_stats stats;
	uint32_t last = 0;
	int err;

	switch (which) {
	case 0:
		err = kvp_open(NULL, &other, error);
		fuzz_assert(!err == !!other);
		kvp_close(other);
		return err;
	case 1:
	case 2:
		return find(ctx, which == 2, error);
	case 3:
		return kvp_pool_each(ctx, each_pool, &last, error);
	case 4:
		return kvp_pool_pins(ctx, 12, 34, each_run, NULL, error);
	case 5:
		return kvp_stats_get(ctx, &stats, error);
	case 6:
		err = create(ctx, &pool, error);
		break;
	case 7:
		err = kvp_pool_claim(ctx, 12, 34, &pool, error);
		break;
	case 8:
		err = kvp_pool_open_name(ctx, "kv-target", KVP_ACCESS_WRITE, &pool, error);
		break;
	case 9:
		err = import(ctx, &pool, error);
		break;
	case 10:
		return kvp_pool_destroy(ctx, 12, 34, 0, error);
	case 11:
		return change(ctx, error);
	case 12:
		return monitor(error);
	case 13:
		return resolve(ctx, error);
	default:
		return name_span(ctx, error);
	}
	close_pool(pool, err);
	return err;
}

/* An acknowledgment: the request is understood, and there is nothing to say. */
static void next_call_works(struct kvp_ctx *ctx)
{
	uint8_t good[2 + NLMSG_HDRLEN + sizeof(struct nlmsgerr)] = { sizeof(good) - 2 };
	const struct nlmsghdr header = { .nlmsg_len = sizeof(good) - 2, .nlmsg_type = NLMSG_ERROR };
	struct kvp_error error;
	int err;

	memcpy(good + 2, &header, sizeof(header));
	kernel.data = good;
	kernel.size = sizeof(good);
	kernel.requests = 0;
	fuzz_error_start(&error);
	err = kvp_pool_destroy(ctx, 1, 1, 0, &error);
	fuzz_error_check(&error, err);
	fuzz_assert(!err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kvp_ctx ctx = { .control = -1, .family = FAMILY };
	struct kvp_error error;
	int err, before;

	if (!size || data[0] > 14)
		return -1;
	memset(&kernel, 0, sizeof(kernel));
	kernel.data = data + 1;
	kernel.size = size - 1;
	pthread_mutex_init(&ctx.lock, NULL);
	kvp_mappings_init(&ctx.mappings);
	before = ctx.control = memfd_create("control", MFD_CLOEXEC);
	fuzz_error_start(&error);
	err = call(&ctx, data[0], &error);
	fuzz_error_check(&error, err);
	fuzz_assert(err || !kernel.spoiled);
	next_call_works(&ctx);
	kvp_nl_close(&ctx.nl);
	fuzz_assert(!kernel.sockets);
	close(ctx.control);
	/* No descriptor was left: the next is the one that this was. */
	ctx.control = memfd_create("control", MFD_CLOEXEC);
	fuzz_assert(ctx.control == before);
	close(ctx.control);
	kvp_owned_free(&ctx);
	kvp_mappings_free(&ctx.mappings);
	pthread_mutex_destroy(&ctx.lock);
	return 0;
}
