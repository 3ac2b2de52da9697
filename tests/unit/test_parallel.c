// SPDX-License-Identifier: LGPL-2.1-or-later
/* Registering by several threads: the same result, order and first error. */
#include <sched.h>
#include <signal.h>

#include "fake_journal.h"

#define BUFFERS 64

static struct {
	pthread_mutex_t lock;
	bool held[BUFFERS];
	unsigned int registered, unregistered;
	unsigned int order[2 * BUFFERS], orders;	/* buffers, in the order of their unregistering */
	unsigned int inside, most_inside;
	/* Script */
	bool meet;			/* calls wait until two are inside */
	int fail[BUFFERS];
	int fail_undo[BUFFERS];
	unsigned int hold;		/* buffer + 1 whose call waits until `failed` others failed */
	unsigned int failed;
} store;

static struct kvp_registrar *registrar;
static struct kvp_list *list;
static struct kvp_registration *registration;
static struct kvp_error error;

static void enter(void)
{
	bool alone = store.meet;

	pthread_mutex_lock(&store.lock);
	if (++store.inside > store.most_inside)
		store.most_inside = store.inside;
	pthread_mutex_unlock(&store.lock);
	while (alone) {
		pthread_mutex_lock(&store.lock);
		alone = store.most_inside < 2;
		pthread_mutex_unlock(&store.lock);
		sched_yield();
	}
}

static int leave(int ret)
{
	pthread_mutex_lock(&store.lock);
	store.inside--;
	pthread_mutex_unlock(&store.lock);
	return ret;
}

static unsigned int failed_others(void)
{
	unsigned int failed;

	pthread_mutex_lock(&store.lock);
	failed = store.failed;
	pthread_mutex_unlock(&store.lock);
	return failed;
}

static int register_chunk(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	const unsigned int n = (unsigned int)(chunk->span.offset / (2 * MIB));

	(void)arg;
	(void)device;
	enter();
	while (store.hold == n + 1 && !failed_others())
		sched_yield();
	pthread_mutex_lock(&store.lock);
	if (store.fail[n])
		store.failed++;
	else
		store.held[n] = true;
	store.registered++;
	pthread_mutex_unlock(&store.lock);
	*cookie = chunk->addr;
	return leave(store.fail[n]);
}

static int unregister_chunk(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	const unsigned int n = (unsigned int)(chunk->span.offset / (2 * MIB));

	(void)arg;
	(void)device;
	assert_ptr_equal(cookie, chunk->addr);
	enter();
	pthread_mutex_lock(&store.lock);
	store.order[store.orders++] = n;
	store.unregistered++;
	if (!store.fail_undo[n])
		store.held[n] = false;
	pthread_mutex_unlock(&store.lock);
	return leave(store.fail_undo[n]);
}

static int limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static const char *device_name(void *arg, uint32_t device)
{
	(void)arg;
	(void)device;
	return "store";
}

static void use(int concurrent)
{
	const struct kvp_registrar_ops ops = {
		.struct_size = sizeof(ops), .limits = limits, .register_chunk = register_chunk,
		.unregister_chunk = unregister_chunk, .device_name = device_name,
		.concurrent = concurrent,
	};

	kvp_registrar_free(registrar);
	assert_int_equal(kvp_registrar_new(&ops, NULL, 1, &registrar), 0);
}

static int setup(void **state)
{
	struct kvp_buffer buffers[BUFFERS];
	uint32_t i;

	memset(&store, 0, sizeof(store));
	pthread_mutex_init(&store.lock, NULL);
	if (fake_world_setup(state))
		return -1;
	fake_world_pool(1, FAKE_BASE, 2 * BUFFERS * MIB);
	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)(FAKE_BASE + i * 2 * MIB), .length = 2 * MIB,
		};
	list = fake_world_list(buffers, BUFFERS);
	registrar = NULL;
	use(1);
	return 0;
}

static int teardown(void **state)
{
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	pthread_mutex_destroy(&store.lock);
	return fake_world_teardown(state);
}

static unsigned int held(void)
{
	unsigned int i, count = 0;

	for (i = 0; i < BUFFERS; i++)
		count += store.held[i];
	return count;
}

static int do_register(uint32_t threads,
		       void (*run)(void (*work)(void *), void *, uint32_t, void *))
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);

	options.threads = threads;
	options.run = run;
	options.run_arg = &store;
	memset(&error, 0, sizeof(error));
	return kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, &options, &registration,
			    &error);
}

static void at_once(void **state)
{
	uint32_t i;

	(void)state;
	store.meet = true;
	assert_int_equal(do_register(4, NULL), 0);
	assert_true(store.most_inside >= 2 && store.most_inside <= 4);
	assert_int_equal(held(), BUFFERS);
	assert_int_equal(store.registered, BUFFERS);
	for (i = 0; i < BUFFERS; i++)
		assert_ptr_equal(kvp_registration_find(registration, i, 0, 0, 0)->cookie,
				 (void *)(uintptr_t)(FAKE_BASE + i * 2 * MIB));
	store.most_inside = 0;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_true(store.most_inside >= 2);
	assert_int_equal(held(), 0);
	assert_int_equal(store.unregistered, BUFFERS);
}

/* Entries are in the order in which they were begun, and each outcome is that of its entry. */
static void in_the_journal(void **state)
{
	const struct kvp_journal_entry *entry;
	struct kvp_journal *journal;
	uint32_t i;

	(void)state;
	assert_int_equal(kvp_log_init(&fake_world_ctx()->log, fake_journal_dir(), NULL), 0);
	store.meet = true;
	assert_int_equal(do_register(4, NULL), 0);
	assert_int_equal(kvp_journal_read(fake_journal_path(), &journal, NULL), 0);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
	assert_int_equal(kvp_journal_info(journal)->open_entries, BUFFERS);
	for (i = 0; (entry = kvp_journal_entry(journal, i)); i++) {
		assert_int_equal(entry->state, KVP_JOURNAL_ENTRY_REGISTERED);
		assert_int_equal(entry->cookie, FAKE_BASE + entry->index * 2 * MIB);
		assert_int_equal(entry->chunk.span.offset, entry->index * 2 * MIB);
	}
	kvp_journal_free(journal);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(kvp_journal_read(fake_journal_path(), &journal, NULL), 0);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
	assert_int_equal(kvp_journal_info(journal)->open_entries, 0);
	kvp_journal_free(journal);
	kvp_log_free(&fake_world_ctx()->log);
	fake_journal_remove();
}

static void one_at_a_time(void **state)
{
	(void)state;
	use(0);
	assert_int_equal(do_register(4, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(store.most_inside, 1);
	assert_int_equal(store.unregistered, BUFFERS);
}

/* A thread that was begun earlier and fails later has failed first. */
static void the_first_in_order_is_the_error(void **state)
{
	(void)state;
	store.fail[5] = -EIO;
	store.fail[6] = -ENOMEM;
	store.hold = 5 + 1;
	assert_int_equal(do_register(2, NULL), -EIO);
	assert_int_equal(error.index, 5);
	assert_null(registration);
	assert_int_equal(held(), 0);
	/* Nobody began another after the failures were known. */
	assert_true(store.registered <= 6 + 2 + 2);
	assert_int_equal(store.unregistered, store.registered - 2);
}

static void what_fails_to_be_undone(void **state)
{
	(void)state;
	assert_int_equal(do_register(3, NULL), 0);
	store.fail_undo[40] = -EIO;
	store.fail_undo[10] = -EBUSY;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error), -EIO);
	assert_int_equal(error.index, 40);
	assert_int_equal(kvp_registration_count(registration), 2);
	memset(store.fail_undo, 0, sizeof(store.fail_undo));
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
}

static unsigned int runs;

/* The caller's own, which has but one thread. */
static void run_here(void (*work)(void *data), void *data, uint32_t count, void *arg)
{
	assert_ptr_equal(arg, &store);
	assert_int_equal(count, 7);
	runs++;
	work(data);
}

static void threads_of_the_caller(void **state)
{
	unsigned int i;

	(void)state;
	runs = 0;
	assert_int_equal(do_register(7, run_here), 0);
	assert_int_equal(runs, 1);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(runs, 2);
	for (i = 0; i < BUFFERS; i++)
		assert_int_equal(store.order[i], BUFFERS - 1 - i);
}

static void too_many(void **state)
{
	(void)state;
	assert_int_equal(do_register(257, NULL), -EINVAL);
	assert_contains(error.message, "257 threads, the most is 256");
	assert_int_equal(store.registered, 0);
}

static pthread_t main_thread;
static atomic_uint masked;	/* threads of the library that have looked */

static void look_at_mask(void *data)
{
	if (!pthread_equal(pthread_self(), main_thread)) {
		pthread_sigmask(SIG_SETMASK, NULL, data);
		atomic_fetch_add(&masked, 1);
	}
	/* The only other thread can't come too late. */
	while (!atomic_load(&masked))
		sched_yield();
}

/* What the thread itself raises gets to the application's handler, and nothing else does. */
static void assert_mask(sigset_t *mask)
{
	static const int own[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	static const int others[] = { SIGINT, SIGTERM, SIGCHLD, SIGALRM, SIGUSR1, SIGABRT };
	unsigned int i;

	assert_int_equal(atomic_load(&masked), 1);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_false(sigismember(mask, own[i]));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_true(sigismember(mask, others[i]));
	/* The caller's is as it was. */
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(sigismember(mask, others[i]));
}

static void no_op(void *data)
{
	(void)data;
}

static void signals(void **state)
{
	const struct kvp_crew crew = { .threads = 2 };
	struct kvp_worker *worker;
	sigset_t mask;

	(void)state;
	main_thread = pthread_self();
	atomic_store(&masked, 0);
	kvp_parallel(&crew, look_at_mask, &mask);
	assert_mask(&mask);

	atomic_store(&masked, 0);
	assert_int_equal(kvp_worker_new(60000000000, &worker), 0);
	assert_int_equal(kvp_worker_do(worker, look_at_mask, &mask, no_op), 0);
	kvp_worker_free(worker, no_op, NULL);
	assert_mask(&mask);
}

#define parallel_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		parallel_test(at_once),
		parallel_test(in_the_journal),
		parallel_test(one_at_a_time),
		parallel_test(the_first_in_order_is_the_error),
		parallel_test(what_fails_to_be_undone),
		parallel_test(threads_of_the_caller),
		parallel_test(too_many),
		cmocka_unit_test(signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
