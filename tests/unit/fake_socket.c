// SPDX-License-Identifier: LGPL-2.1-or-later
/* libmnl's sockets, answered from the script. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_script.h"

void *__real_calloc(size_t count, size_t size);
struct mnl_socket *__real_mnl_socket_open2(int bus, int flags);
int __real_mnl_socket_bind(struct mnl_socket *socket, unsigned int groups, pid_t pid);
int __real_mnl_socket_close(struct mnl_socket *socket);
int __real_mnl_socket_get_fd(const struct mnl_socket *socket);
unsigned int __real_mnl_socket_get_portid(const struct mnl_socket *socket);
ssize_t __real_mnl_socket_sendto(const struct mnl_socket *socket, const void *data, size_t size);
ssize_t __real_mnl_socket_recvfrom(const struct mnl_socket *socket, void *data, size_t size);
int __real_mnl_socket_setsockopt(const struct mnl_socket *socket, int type, void *data,
				 socklen_t size);

/* What a struct mnl_socket really is here. */
struct fake_socket {
	unsigned int portid;
	bool bound;
	unsigned int group;
	size_t answering;	/* number of the step whose datagrams come next, from 1; 0: none */
	size_t next;
	struct nlmsghdr request;
};

/* The datagram that comes next; NULL: none. */
static struct datagram *datagram_next(const struct fake_socket *socket)
{
	const struct step *step = socket->answering ? &fake.steps[socket->answering - 1] : NULL;

	return step && socket->next < step->datagram_count ? &step->datagrams[socket->next] : NULL;
}

struct mnl_socket *__wrap_mnl_socket_open2(int bus, int flags)
{
	static unsigned int portid = 4000;
	struct fake_socket *socket;

	if (!fake.active)
		return __real_mnl_socket_open2(bus, flags);
	if (fake_fails(FAKE_SOCKET))
		return NULL;
	if (bus != NETLINK_GENERIC || !(flags & SOCK_CLOEXEC))
		fake_trouble("netlink socket of bus %d, flags 0x%x", bus, (unsigned int)flags);
	socket = __real_calloc(1, sizeof(*socket));
	socket->portid = ++portid;
	fake.sockets++;
	return (struct mnl_socket *)socket;
}

int __wrap_mnl_socket_bind(struct mnl_socket *socket, unsigned int groups, pid_t pid)
{
	if (!fake.active)
		return __real_mnl_socket_bind(socket, groups, pid);
	if (fake_fails(FAKE_BIND))
		return -1;
	((struct fake_socket *)socket)->bound = true;
	return 0;
}

int __wrap_mnl_socket_close(struct mnl_socket *socket)
{
	if (!fake.active)
		return __real_mnl_socket_close(socket);
	fake.sockets--;
	free(socket);
	return 0;
}

int __wrap_mnl_socket_get_fd(const struct mnl_socket *socket)
{
	return fake.active ? 1000 + fake.sockets : __real_mnl_socket_get_fd(socket);
}

unsigned int __wrap_mnl_socket_get_portid(const struct mnl_socket *socket)
{
	if (!fake.active)
		return __real_mnl_socket_get_portid(socket);
	return ((const struct fake_socket *)socket)->portid;
}

int __wrap_mnl_socket_setsockopt(const struct mnl_socket *socket, int type, void *data,
				 socklen_t size)
{
	if (!fake.active)
		return __real_mnl_socket_setsockopt(socket, type, data, size);
	if (fake_fails(FAKE_SETSOCKOPT))
		return -1;
	if (size != sizeof(int))
		fake_trouble("socket option %d of %u bytes", type, (unsigned int)size);
	if (type == NETLINK_ADD_MEMBERSHIP)
		memcpy(&((struct fake_socket *)(uintptr_t)socket)->group, data, sizeof(int));
	return 0;
}

ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *handle, const void *data, size_t size)
{
	struct fake_socket *socket = (struct fake_socket *)(uintptr_t)handle;
	const struct step *step;
	ssize_t sent = -1;

	if (!fake.active)
		return __real_mnl_socket_sendto(handle, data, size);
	if (fake_fails(FAKE_SEND))
		return -1;
	pthread_mutex_lock(&fake.lock);
	step = step_take(STEP_REQUEST, "a request");
	if (step) {
		memcpy(&socket->request, data, sizeof(socket->request));
		if (!socket->bound || socket->request.nlmsg_pid != socket->portid)
			fake_trouble("a request from another port");
		if (datagram_next(socket))
			fake_trouble("a request before the answer to the last was read");
		script_check_request(step, data, size);
		socket->answering = fake.position;
		socket->next = 0;
		sent = (ssize_t)size;
	}
	pthread_mutex_unlock(&fake.lock);
	return sent;
}

/* Events come when a socket that joined the group has nothing else to read. */
static void next_events(struct fake_socket *socket)
{
	if (socket->group == FAKE_GROUP && fake.position < fake.count &&
	    fake.steps[fake.position].kind == STEP_EVENTS) {
		socket->answering = ++fake.position;
		socket->next = 0;
		memset(&socket->request, 0, sizeof(socket->request));
	}
}

static ssize_t receive(struct fake_socket *socket, void *data, size_t size)
{
	struct datagram *datagram;

	if (!datagram_next(socket))
		next_events(socket);
	datagram = datagram_next(socket);
	if (!datagram) {
		fake_trouble("waiting for a message that never comes");
		errno = EIO;
		return -1;
	}
	socket->next++;
	if (datagram->err) {
		errno = datagram->err;
		return -1;
	}
	script_address(datagram, &socket->request, socket->portid);
	if (datagram->size > size) {
		errno = ENOSPC;		/* as libmnl does on MSG_TRUNC */
		return -1;
	}
	/* The rest of the buffer must not be looked at: make it worthless. */
	memset(data, 0xa5, size);
	memcpy(data, datagram->bytes, datagram->size);
	return (ssize_t)datagram->size;
}

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *handle, void *data, size_t size)
{
	ssize_t received;

	if (!fake.active)
		return __real_mnl_socket_recvfrom(handle, data, size);
	pthread_mutex_lock(&fake.lock);
	received = receive((struct fake_socket *)(uintptr_t)handle, data, size);
	pthread_mutex_unlock(&fake.lock);
	return received;
}
