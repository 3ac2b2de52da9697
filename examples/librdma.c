// SPDX-License-Identifier: GPL-2.0
/* Plain verbs: nothing here knows of pools. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define PORT 1
#define FIRST_PSN 1

static void failed(const char *device, const char *call, int err)
{
	fprintf(stderr, "%s: %s: %s\n", device, call, strerror(err > 0 ? err : errno));
	exit(1);
}

static const char *name_of(const struct rdma_device *device)
{
	return ibv_get_device_name(device->context->device);
}

static struct ibv_context *open_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

/* RoCE reaches a peer by address: the entry of the IPv4 one, ::ffff:a.b.c.d. */
static int find_gid(const struct rdma_device *device)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_port_attr port;
	union ibv_gid gid;
	int i;

	if (ibv_query_port(device->context, PORT, &port))
		failed(name_of(device), "ibv_query_port", errno);
	for (i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(device->context, PORT, i, &gid) &&
		    !memcmp(gid.raw, ipv4, sizeof(ipv4)))
			return i;
	failed(name_of(device), "no IPv4 address", ENOENT);
	return -1;
}

void rdma_open(struct rdma_device *device, const char *name)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	int err;

	device->context = open_name(name);
	if (!device->context)
		failed(name, "no such RDMA device", ENODEV);
	device->gid_index = find_gid(device);
	device->pd = ibv_alloc_pd(device->context);
	device->channel = ibv_create_comp_channel(device->context);
	if (device->channel)
		device->cq = ibv_create_cq(device->context, 4, NULL, device->channel, 0);
	if (!device->pd || !device->cq)
		failed(name, "ibv_alloc_pd or ibv_create_cq", errno);
	init.send_cq = device->cq;
	init.recv_cq = device->cq;
	device->qp = ibv_create_qp(device->pd, &init);
	if (!device->qp)
		failed(name, "ibv_create_qp", errno);
	err = ibv_modify_qp(device->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS);
	if (err)
		failed(name, "ibv_modify_qp to INIT", err);
}

void rdma_close(struct rdma_device *device)
{
	if (ibv_destroy_qp(device->qp) || ibv_destroy_cq(device->cq) ||
	    ibv_destroy_comp_channel(device->channel) || ibv_dealloc_pd(device->pd) ||
	    ibv_close_device(device->context))
		failed("rdma_close", "something still uses it", errno);
}

struct rdma_address rdma_address(const struct rdma_device *device)
{
	struct rdma_address address = { .qpn = device->qp->qp_num };

	if (ibv_query_gid(device->context, PORT, device->gid_index, &address.gid))
		failed(name_of(device), "ibv_query_gid", errno);
	return address;
}

void rdma_connect(struct rdma_device *device, const struct rdma_address *peer)
{
	struct ibv_qp_attr receive = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.grh = { .dgid = peer->gid, .sgid_index = (uint8_t)device->gid_index,
				 .hop_limit = 64 },
			.port_num = PORT,
		},
	};
	struct ibv_qp_attr send = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = FIRST_PSN,
		.max_rd_atomic = 1,
	};
	int err;

	err = ibv_modify_qp(device->qp, &receive, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER);
	if (err)
		failed(name_of(device), "ibv_modify_qp to RTR", err);
	err = ibv_modify_qp(device->qp, &send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		failed(name_of(device), "ibv_modify_qp to RTS", err);
}

void rdma_transfer(struct rdma_device *device, enum ibv_wr_opcode opcode, const struct ibv_mr *mr,
		   void *local, uint64_t remote, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)local, .length = length, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;
	struct ibv_wc wc = { 0 };
	struct ibv_cq *cq;
	void *context;
	int err;

	/* Asked for before the transfer starts, so that its completion is not missed. */
	err = ibv_req_notify_cq(device->cq, 0);
	if (!err)
		err = ibv_post_send(device->qp, &wr, &bad);
	if (err)
		failed(name_of(device), "ibv_post_send", err);
	if (ibv_get_cq_event(device->channel, &cq, &context))
		failed(name_of(device), "ibv_get_cq_event", errno);
	ibv_ack_cq_events(cq, 1);
	if (ibv_poll_cq(device->cq, 1, &wc) != 1)
		failed(name_of(device), "ibv_poll_cq: an event without a completion", EIO);
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "%s: transfer: %s\n", name_of(device),
			ibv_wc_status_str(wc.status));
		exit(1);
	}
}
