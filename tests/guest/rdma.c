// SPDX-License-Identifier: GPL-2.0
#include "rdma.h"

#include <arpa/inet.h>

/* The one port of a soft-RoCE device. */
#define PORT 1

struct ibv_pd *rdma_pd(const char *device)
{
	struct ibv_device **devices;
	struct ibv_context *context = NULL;
	struct ibv_pd *pd;
	int count;

	devices = ibv_get_device_list(&count);
	CHECK(devices);
	for (int i = 0; i < count && !context; i++)
		if (!strcmp(ibv_get_device_name(devices[i]), device))
			context = ibv_open_device(devices[i]);
	ibv_free_device_list(devices);
	if (!context)
		FAIL("device %s can't be opened (errno %d)", device, errno);
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	return pd;
}

long rdma_mr_count(const char *device)
{
	/* Those of the kernel itself show its name in brackets. */
	return shell_number("rdma resource show mr | grep -c 'dev %s .* comm [^[]'", device);
}

/* RoCE v2 goes over UDP: the entry of the device's IPv4 address routes. */
static uint8_t find_gid(struct ibv_context *context, union ibv_gid *gid)
{
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(context, PORT, &port));
	for (int i = 0; i < port.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(context, PORT, (uint32_t)i, &entry, 0))
			continue;
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    IN6_IS_ADDR_V4MAPPED((struct in6_addr *)entry.gid.raw)) {
			*gid = entry.gid;
			return (uint8_t)i;
		}
	}
	FAIL("%s has no RoCE v2 GID of an IPv4 address", ibv_get_device_name(context->device));
}

void rdma_open(struct rdma_connection *connection, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	connection->channel = ibv_create_comp_channel(pd->context);
	CHECK(connection->channel);
	connection->cq = ibv_create_cq(pd->context, 2, NULL, connection->channel, 0);
	CHECK(connection->cq);
	init.send_cq = init.recv_cq = connection->cq;
	connection->qp = ibv_create_qp(pd, &init);
	CHECK(connection->qp);
	EQUAL(ibv_modify_qp(connection->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), 0);
	connection->gid_index = find_gid(pd->context, &connection->end.gid);
	connection->end.qp_number = connection->qp->qp_num;
	connection->end.first_packet = (uint32_t)getpid() & 0xffffff;
}

void rdma_connect(struct rdma_connection *connection, const struct rdma_end *other)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other->qp_number,
		.rq_psn = other->first_packet,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = {
				.dgid = other->gid,
				.sgid_index = connection->gid_index,
				.hop_limit = 1,
			},
		},
	};

	EQUAL(ibv_modify_qp(connection->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER), 0);
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = connection->end.first_packet,
		.timeout = 18,	/* a second: an emulated guest is slow to answer */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	EQUAL(ibv_modify_qp(connection->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

enum ibv_wc_status rdma_transfer(struct rdma_connection *connection, enum ibv_wr_opcode opcode,
				 const struct ibv_mr *mr, void *addr, uint32_t length,
				 const struct rdma_remote *remote)
{
	struct ibv_sge piece = { .addr = (uintptr_t)addr, .length = length, .lkey = mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &piece,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = remote->addr, .rkey = remote->rkey },
	};
	struct ibv_send_wr *bad;
	struct ibv_cq *cq;
	struct ibv_wc done;
	void *context;

	/* Asked for before posting: an event can't be missed, so nothing need be polled. */
	EQUAL(ibv_req_notify_cq(connection->cq, 0), 0);
	EQUAL(ibv_post_send(connection->qp, &request, &bad), 0);
	EQUAL(ibv_get_cq_event(connection->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	EQUAL(ibv_poll_cq(connection->cq, 1, &done), 1);
	return done.status;
}
