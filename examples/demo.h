/* SPDX-License-Identifier: GPL-2.0 */
/* What the examples share: errors, messages, bytes to compare, RDMA devices. */
#ifndef DEMO_H
#define DEMO_H

#include <infiniband/verbs.h>

#include "kvpool.h"

#define MIB		((uint64_t)1 << 20)
#define MESSAGE_SIZE	4096

/* ------------------------------------------------------------- libdemo.c */

/* Print "PROGRAM: WHAT: the library's line" on stderr and exit with 1. */
_Noreturn void die(const char *what, const struct kvp_error *error);
/* The same for a call that set errno. */
_Noreturn void die_errno(const char *what);

/*
 * Unix sockets that keep messages apart, so a request is one send and its
 * answer one receive. The text of a received message ends in a NUL; 0 is the
 * other side's end.
 */
int message_listen(const char *path);
int message_connect(const char *path);
void message_send(int fd, const void *data, size_t size);
size_t message_receive(int fd, void *data, size_t size);

/* Cut `text` at blanks; returns how many words there are, at most `max`. */
int split(char *text, char **words, int max);

/* Bytes that differ by owner and by place, so that one that went astray shows. */
void pattern_fill(void *addr, uint64_t offset, uint64_t length, uint32_t owner);
int pattern_matches(const void *addr, uint64_t offset, uint64_t length, uint32_t owner);
uint64_t checksum(const void *addr, uint64_t length);

/* ------------------------------------------------------------- librdma.c */

/* A device with a protection domain and one reliable queue pair. */
struct rdma_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int gid_index;
};

/* What the other side must know to reach the queue pair. */
struct rdma_address {
	uint32_t qpn;
	union ibv_gid gid;
};

/* Each prints the cause and exits when it can't. */
void rdma_open(struct rdma_device *device, const char *name);
void rdma_close(struct rdma_device *device);
struct rdma_address rdma_address(const struct rdma_device *device);
void rdma_connect(struct rdma_device *device, const struct rdma_address *peer);
/* One transfer, to its completion. `opcode` is IBV_WR_RDMA_WRITE or IBV_WR_RDMA_READ. */
void rdma_transfer(struct rdma_device *device, enum ibv_wr_opcode opcode, const struct ibv_mr *mr,
		   void *local, uint64_t remote, uint32_t rkey, uint32_t length);

/* ------------------------------------------------------------ libflaky.c */

/* A registrar that counts, and whose call number `fail_at` fails. */
struct flaky {
	const struct rdma_device *devices;
	uint32_t fail_at;	/* 1: the first call */
	uint32_t calls;		/* of register */
	uint32_t undone;	/* calls of unregister */
	int in_reverse;		/* each undid the latest that was left */
	/* Called before the failure: what does the machine look like now? */
	void (*at_failure)(void);
	struct ibv_mr *order[16];
	uint32_t held;
};

int flaky_new(struct flaky *flaky, uint32_t devices, struct kvp_registrar **registrar);

#endif /* DEMO_H */
