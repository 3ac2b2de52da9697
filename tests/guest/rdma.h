/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Verbs for guest tests: devices, and reliable connections over RoCE v2 between
 * two processes. What is opened here is closed by the end of the process.
 */
#ifndef RDMA_H
#define RDMA_H

#include <infiniband/verbs.h>

#include "guest.h"

#define RDMA_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* A new protection domain on the device of this name. */
struct ibv_pd *rdma_pd(const char *device);
/* Memory regions that processes have at a device now. */
long rdma_mr_count(const char *device);

/* What one end of a connection must know of the other; sent between processes as it is. */
struct rdma_end {
	union ibv_gid gid;
	uint32_t qp_number;
	uint32_t first_packet;
};

struct rdma_connection {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t gid_index;
	struct rdma_end end;	/* this one */
};

/* Make a queue pair. The other end must have got `end` before data goes its way. */
void rdma_open(struct rdma_connection *connection, struct ibv_pd *pd);
void rdma_connect(struct rdma_connection *connection, const struct rdma_end *other);

/* A piece of the other process's memory that is registered there. */
struct rdma_remote {
	uint64_t addr;
	uint32_t rkey;
};

/*
 * IBV_WR_RDMA_WRITE: from `addr`, in `mr`, to the other process;
 * IBV_WR_RDMA_READ: the other way. Waits for the completion, whose status it returns.
 */
enum ibv_wc_status rdma_transfer(struct rdma_connection *connection, enum ibv_wr_opcode opcode,
				 const struct ibv_mr *mr, void *addr, uint32_t length,
				 const struct rdma_remote *remote);

#endif /* RDMA_H */
