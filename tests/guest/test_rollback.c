// SPDX-License-Identifier: GPL-2.0
/*
 * A registration that fails at any of its steps leaves nothing, with real memory
 * regions at two devices. The registrar here is a caller's own, over ibverbs,
 * that fails when it is told to and writes down the order of calls.
 */
#include "registering.h"

#define BUFFERS 4
#define CALLS (BUFFERS * DEVICES)
#define NEVER UINT32_MAX

struct faulty {
	struct ibv_pd *pds[DEVICES];
	struct kvp_ctx *ctx;
	struct kvp_pool *pool;
	uint32_t fail_register;		/* the call that fails, from 0 */
	int register_code;
	uint32_t fail_unregister;	/* a bit for each call's memory region */
	int unregister_code;
	uint32_t calls;
	uint32_t registered[CALLS];	/* by chunk and device: see place_of() */
	uint32_t registered_count;
	uint32_t unregistered[2 * CALLS];
	uint32_t unregistered_count;
	uint32_t pinned_at_failure;
	enum kvp_registration_state state_at_failure;
	long regions_at_failure;
};

/* A number for a device's part of a buffer: buffers begin on blocks. */
static uint32_t place_of(const struct kvp_chunk *chunk, uint32_t device)
{
	return (uint32_t)(chunk->span.offset / BLOCK) * DEVICES + device;
}

static int faulty_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static const char *faulty_name(void *arg, uint32_t device)
{
	const struct faulty *faulty = arg;

	return ibv_get_device_name(faulty->pds[device]->context->device);
}

static int faulty_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	struct faulty *faulty = arg;
	struct ibv_mr *mr;

	if (faulty->calls++ == faulty->fail_register) {
		const struct kvp_pool_info info = query(faulty->pool);

		faulty->pinned_at_failure = info.pinned_blocks;
		faulty->state_at_failure = info.registration;
		faulty->regions_at_failure = mr_count();
		return faulty->register_code;
	}
	mr = ibv_reg_mr(faulty->pds[device], chunk->addr, chunk->length, RDMA_ACCESS);
	CHECK(mr);
	*cookie = mr;
	faulty->registered[faulty->registered_count++] = place_of(chunk, device);
	return 0;
}

static int faulty_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk,
			     void *cookie)
{
	struct faulty *faulty = arg;
	const uint32_t place = place_of(chunk, device);

	faulty->unregistered[faulty->unregistered_count++] = place;
	CHECK(((struct ibv_mr *)cookie)->pd == faulty->pds[device]);
	CHECK(((struct ibv_mr *)cookie)->addr == chunk->addr);
	if (faulty->fail_unregister & (1U << place))
		return faulty->unregister_code;
	return -ibv_dereg_mr(cookie);
}

struct setting {
	struct faulty faulty;
	struct kvp_ctx *ctx;
	struct kvp_pool *pool;
	char *addr;
	struct kvp_registrar *registrar;
	struct kvp_buffer buffers[BUFFERS];
	struct kvp_list *list;
	struct kvp_registration *registration;
};

static void set_up(struct setting *setting)
{
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops),
		.limits = faulty_limits,
		.register_chunk = faulty_register,
		.unregister_chunk = faulty_unregister,
		.device_name = faulty_name,
		.pins = 1,
	};

	memset(setting, 0, sizeof(*setting));
	setting->ctx = open_ctx();
	setting->pool = make_pool(setting->ctx, "kv", BUFFERS * BLOCK);
	setting->addr = map_pool(setting->pool);
	setting->faulty.pool = setting->pool;
	setting->faulty.fail_register = NEVER;
	open_devices(setting->faulty.pds);
	EQUAL(kvp_registrar_new(&ops, &setting->faulty, DEVICES, &setting->registrar), 0);
	for (uint32_t i = 0; i < BUFFERS; i++)
		setting->buffers[i] = (struct kvp_buffer){
			.addr = setting->addr + i * BLOCK,
			.length = BLOCK,
		};
	setting->list = list_of(setting->buffers, BUFFERS);
}

static void forget_calls(struct faulty *faulty)
{
	faulty->calls = faulty->registered_count = faulty->unregistered_count = 0;
}

static void nothing_left(struct setting *setting)
{
	pins_are(setting->ctx, setting->pool, "");
	EQUAL(proc_kib("/proc/self/status", "VmPin:"), 0);
	EQUAL(mr_count(), 0);
}

/* The last `count` registered were unregistered, the last first. */
static void undone_in_reverse(const struct faulty *faulty, uint32_t count)
{
	EQUAL(faulty->registered_count, count);
	EQUAL(faulty->unregistered_count, count);
	for (uint32_t i = 0; i < count; i++)
		EQUAL(faulty->unregistered[i], faulty->registered[count - 1 - i]);
}

#define REGISTER(want, options) \
	RETURNS(want, kvp_register(setting.ctx, "kv", setting.list, &setting.registrar, 1, options, \
				   &setting.registration, &error))

static void each_call_fails_once(void)
{
	static const char *const names[DEVICES] = { "rxe0", "rxe1" };
	struct setting setting;
	struct faulty *faulty = &setting.faulty;

	set_up(&setting);
	faulty->register_code = -ENOMEM;
	for (uint32_t k = 0; k < CALLS; k++) {
		forget_calls(faulty);
		faulty->fail_register = k;
		REGISTER(-ENOMEM, NULL);
		CHECK(!setting.registration);
		EQUAL(last_error.err, -ENOMEM);
		EQUAL(last_error.phase, KVP_PHASE_REGISTER);
		EQUAL(last_error.index, k / DEVICES);
		EQUAL(last_error.repeated, 0);
		CHECK(!strcmp(last_error.device, names[k % DEVICES]));
		SAYS("can't register 2097152 bytes");
		/* They were there, */
		EQUAL(faulty->regions_at_failure, k);
		EQUAL(faulty->pinned_at_failure, (k + DEVICES - 1) / DEVICES);
		EQUAL(faulty->state_at_failure, KVP_REGISTRATION_REGISTERING);
		/* and are gone; none was asked for after the failure. */
		EQUAL(faulty->calls, k + 1);
		undone_in_reverse(faulty, k);
		nothing_left(&setting);
		EQUAL(query(setting.pool).registration, KVP_REGISTRATION_FAILED);
	}

	/* The same list, later: nothing of the failures stands in its way. */
	forget_calls(faulty);
	faulty->fail_register = NEVER;
	REGISTER(0, NULL);
	EQUAL(mr_count(), CALLS);
	pins_are(setting.ctx, setting.pool, "0+4");
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_COMMITTED);
	unregister(setting.ctx, setting.registration);
	undone_in_reverse(faulty, CALLS);
	nothing_left(&setting);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_ALLOCATED);
}

/* An engine's own code, as an external store returns it. */
static void positive_code(void)
{
	struct setting setting;

	set_up(&setting);
	setting.faulty.fail_register = 5;
	setting.faulty.register_code = 600;
	REGISTER(-EREMOTEIO, NULL);
	SAYS("the registrar returned code 600");
	EQUAL(last_error.index, 2);
	CHECK(!strcmp(last_error.device, "rxe1"));
	undone_in_reverse(&setting.faulty, 5);
	nothing_left(&setting);
}

/* The real devices' own failure: the second buffer's memory goes while the first is registered. */
static int unmap_first(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	struct setting *setting = arg;

	(void)device;
	CHECK(!munmap(setting->addr + 2 * BLOCK, BLOCK));
	*max_length = *max_count = 0;
	return 0;
}

static int none(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	(void)arg;
	(void)device;
	(void)chunk;
	*cookie = NULL;
	return 0;
}

static int none_undone(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	(void)arg;
	(void)device;
	(void)chunk;
	CHECK(!cookie);
	return 0;
}

static const char *none_name(void *arg, uint32_t device)
{
	(void)arg;
	(void)device;
	return "store";
}

static void device_fails_by_itself(void)
{
	/* Its limits are asked for after the checks: the one place to break things between. */
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops),
		.limits = unmap_first,
		.register_chunk = none,
		.unregister_chunk = none_undone,
		.device_name = none_name,
	};
	struct kvp_registrar *both[2];
	struct setting setting;

	set_up(&setting);
	EQUAL(kvp_registrar_new(&ops, &setting, 1, &both[1]), 0);
	both[0] = verbs_registrar(setting.faulty.pds, RDMA_ACCESS);
	RETURNS(-EFAULT, kvp_register(setting.ctx, "kv", setting.list, both, 2, NULL,
				      &setting.registration, &error));
	EQUAL(last_error.phase, KVP_PHASE_REGISTER);
	EQUAL(last_error.index, 2);
	CHECK(!strcmp(last_error.device, "rxe0"));
	SAYS("check that the memory is still mapped with the access asked for");
	CHECK(!setting.registration);
	nothing_left(&setting);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_FAILED);
}

/* Unregistering one, two or all fails during rollback: mooncake 3717, nixl 1758. */
static void unregister_fails_during_rollback(void)
{
	static const struct {
		uint32_t places;
		uint32_t left;
		const char *pins;
	} faults[] = {
		{ 1U << 0, 1, "0+1" },
		{ 1U << 5, 1, "2+1" },
		{ 1U << 1 | 1U << 4, 2, "0+1 2+1" },
		{ 0x7f, 7, "0+4" },
	};
	struct setting setting;
	struct faulty *faulty = &setting.faulty;

	set_up(&setting);
	faulty->fail_register = CALLS - 1;
	faulty->register_code = -ENOSPC;
	faulty->unregister_code = -EIO;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct kvp_registration *second = NULL;
		const struct kvp_entry *entry;
		char text[100];

		forget_calls(faulty);
		faulty->fail_unregister = faults[i].places;
		/* The first error is kept, not that of the undoing. */
		REGISTER(-ENOSPC, NULL);
		EQUAL(last_error.phase, KVP_PHASE_REGISTER);
		EQUAL(last_error.index, BUFFERS - 1);
		CHECK(!strcmp(last_error.device, "rxe1"));
		snprintf(text, sizeof(text), "%" PRIu32 " of its registrations could not be undone: "
			 "call kvp_unregister()", faults[i].left);
		SAYS(text);
		undone_in_reverse(faulty, CALLS - 1);

		/* Left are those that failed, and nothing else. */
		CHECK(setting.registration);
		EQUAL(kvp_registration_count(setting.registration), faults[i].left);
		EQUAL(mr_count(), faults[i].left);
		pins_are(setting.ctx, setting.pool, faults[i].pins);
		for (uint32_t n = 0; n < faults[i].left; n++) {
			entry = kvp_registration_entry(setting.registration, n);
			EQUAL(entry->quarantined, 1);
			CHECK(faults[i].places & (1U << place_of(&entry->chunk, entry->device)));
		}
		EQUAL(query(setting.pool).registration, KVP_REGISTRATION_FAILED);

		/* Its memory is not registered again, and the answer repeats why. */
		RETURNS(-EBUSY, kvp_register(setting.ctx, "kv", setting.list, &setting.registrar, 1,
					     NULL, &second, &error));
		SAYS("are quarantined by an earlier failure");
		SAYS("can't unregister 2097152 bytes");
		CHECK(!second);
		EQUAL(mr_count(), faults[i].left);

		/* A retry that fails again keeps them; one that succeeds leaves nothing. */
		forget_calls(faulty);
		RETURNS(-EIO, kvp_unregister(setting.ctx, &setting.registration, &error));
		EQUAL(last_error.phase, KVP_PHASE_UNDO);
		SAYS("do not use this memory before kvp_unregister() has succeeded");
		EQUAL(faulty->unregistered_count, faults[i].left);
		EQUAL(kvp_registration_count(setting.registration), faults[i].left);
		faulty->fail_unregister = 0;
		unregister(setting.ctx, setting.registration);
		EQUAL(faulty->unregistered_count, 2 * faults[i].left);
		nothing_left(&setting);
	}
}

static void unregister_of_a_committed_fails(void)
{
	struct setting setting;
	struct faulty *faulty = &setting.faulty;

	set_up(&setting);
	faulty->unregister_code = 7;
	REGISTER(0, NULL);
	faulty->fail_unregister = 1U << 3;
	RETURNS(-EREMOTEIO, kvp_unregister(setting.ctx, &setting.registration, &error));
	SAYS("the registrar returned code 7");
	EQUAL(last_error.index, 1);
	CHECK(!strcmp(last_error.device, "rxe1"));
	undone_in_reverse(faulty, CALLS);
	EQUAL(kvp_registration_count(setting.registration), 1);
	EQUAL(mr_count(), 1);
	pins_are(setting.ctx, setting.pool, "1+1");
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_FAILED);
	/* The kernel still counts the pin: destroying the pool would free nothing of it. */
	RETURNS(-EBUSY, kvp_pool_destroy(setting.ctx, kvp_pool_id(setting.pool),
					 kvp_pool_generation(setting.pool), 0, &error));
	SAYS("1 pinned blocks");
	faulty->fail_unregister = 0;
	unregister(setting.ctx, setting.registration);
	nothing_left(&setting);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_ALLOCATED);
}

struct commit {
	struct setting *setting;
	int calls;
	int result;
};

static int look_at_commit(const struct kvp_registration *registration, void *arg)
{
	struct commit *commit = arg;

	commit->calls++;
	/* All is registered, and the kernel does not say so before the caller does. */
	EQUAL(kvp_registration_count(registration), CALLS);
	EQUAL(commit->setting->faulty.registered_count, CALLS);
	EQUAL(mr_count(), CALLS);
	EQUAL(query(commit->setting->pool).registration, KVP_REGISTRATION_REGISTERING);
	return commit->result;
}

static void commit_fails(void)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	struct setting setting;
	struct commit commit = { .setting = &setting, .result = -ECANCELED };

	set_up(&setting);
	options.commit = look_at_commit;
	options.arg = &commit;
	REGISTER(-ECANCELED, &options);
	EQUAL(commit.calls, 1);
	EQUAL(last_error.phase, KVP_PHASE_COMMIT);
	EQUAL(last_error.index, KVP_NONE);
	SAYS("the commit function returned -125");
	SAYS("nothing of this transaction is registered any more");
	CHECK(!setting.registration);
	undone_in_reverse(&setting.faulty, CALLS);
	nothing_left(&setting);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_FAILED);

	forget_calls(&setting.faulty);
	commit.result = 0;
	REGISTER(0, &options);
	EQUAL(commit.calls, 2);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_COMMITTED);
	unregister(setting.ctx, setting.registration);
	nothing_left(&setting);

	/* Not called when a registration fails before it. */
	forget_calls(&setting.faulty);
	setting.faulty.fail_register = CALLS - 1;
	setting.faulty.register_code = -ENOMEM;
	REGISTER(-ENOMEM, &options);
	EQUAL(commit.calls, 2);
}

/* The draft pool fell back to plain mmap, the target's was good: sglang 28873. */
static void nothing_is_touched_when_a_check_fails(void)
{
	struct setting setting;
	struct kvp_list *list;

	set_up(&setting);
	setting.buffers[3].addr = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(setting.buffers[3].addr != MAP_FAILED);
	list = list_of(setting.buffers, BUFFERS);
	RETURNS(-ENOTSUP, kvp_register(setting.ctx, "kv", list, &setting.registrar, 1, NULL,
				       &setting.registration, &error));
	SAYS("buffer 3: 2097152 bytes at 0x");
	SAYS("are private anonymous memory, not a pool of domain kv");
	EQUAL(last_error.phase, KVP_PHASE_CHECK);
	EQUAL(last_error.index, 3);
	EQUAL(setting.faulty.calls, 0);
	EQUAL(setting.faulty.unregistered_count, 0);
	CHECK(!setting.registration);
	nothing_left(&setting);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_ALLOCATED);
}

/* The failure of one leaves the registration of the other alone. */
static void two_registrations_of_a_pool(void)
{
	struct kvp_registration *first = NULL;
	struct setting setting;
	struct kvp_list *half, *other;

	set_up(&setting);
	half = list_of(setting.buffers, 2);
	other = list_of(setting.buffers + 2, 2);
	RETURNS(0, kvp_register(setting.ctx, "kv", half, &setting.registrar, 1, NULL, &first,
				&error));
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_COMMITTED);
	setting.faulty.fail_register = 4 + 3;
	setting.faulty.register_code = -ENOMEM;
	RETURNS(-ENOMEM, kvp_register(setting.ctx, "kv", other, &setting.registrar, 1, NULL,
				      &setting.registration, &error));
	EQUAL(mr_count(), 4);
	pins_are(setting.ctx, setting.pool, "0+2");
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_COMMITTED);
	unregister(setting.ctx, first);
	nothing_left(&setting);
	EQUAL(query(setting.pool).registration, KVP_REGISTRATION_ALLOCATED);
}

int main(void)
{
	RUN(each_call_fails_once);
	RUN(positive_code);
	RUN(device_fails_by_itself);
	RUN(unregister_fails_during_rollback);
	RUN(unregister_of_a_committed_fails);
	RUN(commit_fails);
	RUN(nothing_is_touched_when_a_check_fails);
	RUN(two_registrations_of_a_pool);
	return cases_end();
}
