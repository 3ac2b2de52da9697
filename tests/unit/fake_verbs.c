// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_verbs.h"

/* These are macros that pick one of two functions. */
#undef ibv_reg_mr

#define DEVICES 8

struct region {
	struct ibv_mr mr;
	struct region *next;
};

struct failing {
	bool armed;
	unsigned int skip;
	unsigned int times;
	int err;
};

struct device {
	struct ibv_device device;
	struct ibv_context context;
	struct ibv_pd pd;
	int max_mr;
	uint64_t max_mr_size;
	unsigned int live;
};

static struct {
	struct device devices[DEVICES];
	uint32_t device_count;
	struct region *regions;
	unsigned int live;
	struct failing reg, dereg;
	int query_err;
	struct fake_verbs_call calls[FAKE_VERBS_CALLS];
	unsigned int call_count;
	const char *trouble;
} fake_ibv;

void fake_verbs_reset(void)
{
	while (fake_ibv.regions) {
		struct region *region = fake_ibv.regions;

		fake_ibv.regions = region->next;
		free(region);
	}
	memset(&fake_ibv, 0, sizeof(fake_ibv));
}

struct ibv_pd *fake_verbs_pd(const char *name, int max_mr, uint64_t max_mr_size)
{
	struct device *device = &fake_ibv.devices[fake_ibv.device_count];

	if (fake_ibv.device_count == DEVICES)
		abort();
	strncpy(device->device.name, name, sizeof(device->device.name) - 1);
	device->context.device = &device->device;
	device->pd.context = &device->context;
	device->pd.handle = fake_ibv.device_count++;
	device->max_mr = max_mr;
	device->max_mr_size = max_mr_size;
	return &device->pd;
}

void fake_verbs_fail_query(int err)
{
	fake_ibv.query_err = err;
}

void fake_verbs_fail_reg(unsigned int k, unsigned int times, int err)
{
	fake_ibv.reg = (struct failing){ true, k, times, err };
}

void fake_verbs_fail_dereg(unsigned int k, unsigned int times, int err)
{
	fake_ibv.dereg = (struct failing){ true, k, times, err };
}

unsigned int fake_verbs_live(void)
{
	return fake_ibv.live;
}

unsigned int fake_verbs_calls(void)
{
	return fake_ibv.call_count;
}

const struct fake_verbs_call *fake_verbs_call(unsigned int n)
{
	return n < fake_ibv.call_count ? &fake_ibv.calls[n] : NULL;
}

void fake_verbs_forget_calls(void)
{
	fake_ibv.call_count = 0;
}

const char *fake_verbs_trouble(void)
{
	return fake_ibv.trouble;
}

static bool fails(struct failing *failing)
{
	if (!failing->armed || failing->skip) {
		failing->skip -= failing->armed;
		return false;
	}
	failing->armed = --failing->times;
	return true;
}

static struct fake_verbs_call *log_call(bool undo, uint32_t device, void *addr, uint64_t length,
					unsigned int access)
{
	struct fake_verbs_call *call;

	if (fake_ibv.call_count == FAKE_VERBS_CALLS)
		abort();
	call = &fake_ibv.calls[fake_ibv.call_count++];
	*call = (struct fake_verbs_call){
		.undo = undo,
		.device = device,
		.addr = addr,
		.length = length,
		.access = access,
	};
	return call;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct device *device;

	if (fake_ibv.query_err)
		return fake_ibv.query_err;
	device = (const struct device *)((const char *)context - offsetof(struct device, context));
	attr->max_mr = device->max_mr;
	attr->max_mr_size = device->max_mr_size;
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* What a device refuses by itself. */
static int refuse(const struct device *device, size_t length)
{
	if (!length || (device->max_mr_size && length > device->max_mr_size))
		return EINVAL;
	if (device->max_mr > 0 && device->live == (unsigned int)device->max_mr)
		return ENOMEM;
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct device *device = &fake_ibv.devices[pd->handle];
	struct fake_verbs_call *call = log_call(false, pd->handle, addr, length, access);
	struct region *region;

	if (iova != (uintptr_t)addr)
		fake_ibv.trouble = "registered at another address than its own";
	call->err = refuse(device, length);
	if (call->err) {
		errno = call->err;
		return NULL;
	}
	if (fails(&fake_ibv.reg)) {
		call->err = fake_ibv.reg.err ? fake_ibv.reg.err : EIO;
		errno = fake_ibv.reg.err;
		return NULL;
	}
	/* Not an allocation that fake_fail_alloc() counts as the library's. */
	region = aligned_alloc(_Alignof(struct region), sizeof(*region));
	if (!region)
		abort();
	memset(region, 0, sizeof(*region));
	region->mr.context = pd->context;
	region->mr.pd = pd;
	region->mr.addr = addr;
	region->mr.length = length;
	region->next = fake_ibv.regions;
	fake_ibv.regions = region;
	fake_ibv.live++;
	device->live++;
	return &region->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct region **at, *region;
	struct fake_verbs_call *call;

	for (at = &fake_ibv.regions; *at && &(*at)->mr != mr; at = &(*at)->next)
		;
	region = *at;
	if (!region) {
		fake_ibv.trouble = "unregistered what is not registered";
		return EINVAL;
	}
	call = log_call(true, mr->pd->handle, mr->addr, mr->length, 0);
	if (fails(&fake_ibv.dereg)) {
		call->err = fake_ibv.dereg.err;
		if (call->err == -1)
			errno = EIO;
		return call->err;
	}
	*at = region->next;
	fake_ibv.devices[mr->pd->handle].live--;
	fake_ibv.live--;
	free(region);
	return 0;
}
