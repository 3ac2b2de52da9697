// SPDX-License-Identifier: LGPL-2.1-or-later
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_store.h"

struct fake_store *fake_store;
const char *fake_store_dir;

static char events[4096];

int fake_store_map(void **state)
{
	(void)state;
	fake_store = mmap(NULL, sizeof(*fake_store), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return fake_store == MAP_FAILED ? -1 : 0;
}

int fake_store_unmap(void **state)
{
	(void)state;
	return munmap(fake_store, sizeof(*fake_store));
}

int fake_store_setup(void **state)
{
	memset(fake_store, 0, sizeof(*fake_store));
	fake_store_dir = fake_journal_dir();
	if (fake_world_setup(state))
		return -1;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fake_world_info(1)->owned = 0;
	fake_world_others(1);
	return 0;
}

int fake_store_teardown(void **state)
{
	if (fake_store->wrong)
		print_error("something was unregistered that the store did not hold\n");
	fake_journal_remove();
	return fake_world_teardown(state) || fake_store->wrong ? -1 : 0;
}

unsigned int fake_store_held(void)
{
	unsigned int i, count = 0;

	for (i = 0; i < STORE_SLOTS; i++)
		count += (unsigned int)fake_store->held[i];
	return count;
}

/* ---------------------------------------------------------------- registrar */

static int store_limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static int store_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	const unsigned int n = (unsigned int)(chunk->span.offset / (4 * MIB));

	(void)arg;
	(void)device;
	fake_store->held[n] = 1;
	*cookie = (void *)(uintptr_t)(n + 100);
	return 0;
}

static int store_unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	const unsigned int n = (unsigned int)(chunk->span.offset / (4 * MIB));

	(void)arg;
	if (device || chunk->span.id != 1 || chunk->span.generation != 101 ||
	    chunk->length != 2 * MIB || (cookie && (uintptr_t)cookie != n + 100))
		fake_store->wrong = true;
	fake_store->undone[fake_store->undo_calls++] = n;
	if (fake_store->undo_ret[n])
		return fake_store->undo_ret[n];
	if (!fake_store->held[n])
		return -ENOENT;
	fake_store->held[n] = 0;
	return 0;
}

static const char *store_device(void *arg, uint32_t device)
{
	(void)arg;
	return device ? "other" : "disk";
}

struct kvp_registrar *fake_store_registrar(const char *name)
{
	struct kvp_registrar_ops ops = KVP_INIT(struct kvp_registrar_ops);
	struct kvp_registrar *registrar;

	ops.limits = store_limits;
	ops.register_chunk = store_register;
	ops.unregister_chunk = store_unregister;
	ops.device_name = store_device;
	ops.name = name;
	ops.external = 1;
	assert_int_equal(kvp_registrar_new(&ops, NULL, 1, &registrar), 0);
	return registrar;
}

/* ---------------------------------------------------------------- processes */

static _Noreturn void live(enum fake_end end, bool created, int ready)
{
	struct kvp_owned pool = { .id = 1, .generation = 101, .created = true };
	struct kvp_registrar *registrar = fake_store_registrar("store");
	struct kvp_buffer buffers[STORE_BUFFERS] = { { 0 } };
	struct kvp_ctx *ctx = fake_world_ctx();
	struct kvp_registration *registration;
	struct kvp_list *list;
	uint32_t i;

	for (i = 0; i < STORE_BUFFERS; i++) {
		buffers[i].addr = (void *)(uintptr_t)(FAKE_BASE + i * 4 * MIB);
		buffers[i].length = 2 * MIB;
	}
	list = fake_world_list(buffers, STORE_BUFFERS);
	if (created)
		ctx->owned = &pool;
	if (kvp_log_init(&ctx->log, fake_store_dir, NULL) ||
	    kvp_register(ctx, "kv", list, &registrar, 1, NULL, &registration, NULL))
		_exit(1);
	if (ready >= 0) {
		if (write(ready, "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (end != FAKE_EXIT && kvp_unregister(ctx, &registration, NULL))
		_exit(1);
	if (end != FAKE_CLOSE)
		_exit(0);
	/* Once more, which starts the file anew. */
	if (kvp_register(ctx, "kv", list, &registrar, 1, NULL, &registration, NULL) ||
	    kvp_unregister(ctx, &registration, NULL))
		_exit(1);
	kvp_log_free(&ctx->log);
	_exit(0);
}

bool fake_store_process(enum fake_end end, bool created, unsigned int n, bool torn)
{
	pid_t pid = fake_fork();
	int status;

	if (!pid) {
		fake_kill(n, torn);
		live(end, created, -1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

pid_t fake_store_waiting(void)
{
	int pipes[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fake_fork();
	if (!pid)
		live(FAKE_EXIT, false, pipes[1]);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	return pid;
}

void fake_store_end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ----------------------------------------------------------------- recovery */

static void note(const struct kvp_recovery_event *event, void *arg)
{
	const size_t used = strlen(events);
	char number[16] = "";

	(void)arg;
	assert_true(event->file && event->reason);
	if (event->entry)
		snprintf(number, sizeof(number), ":%u", (unsigned int)event->entry->number);
	else if (event->pool)
		snprintf(number, sizeof(number), ":%u", (unsigned int)event->pool->id);
	snprintf(events + used, sizeof(events) - used, "%s%s%s", used ? " " : "",
		 kvp_recovery_action_name(event->action), number);
}

const char *fake_store_events(void)
{
	return events;
}

static struct kvp_recovery_report recover(struct kvp_registrar *registrar, bool dry_run)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_recovery_report report;
	struct kvp_error error;

	events[0] = '\0';
	options.journal_dir = fake_store_dir;
	options.registrars = &registrar;
	options.registrar_count = registrar ? 1 : 0;
	options.dry_run = dry_run;
	options.each = note;
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, &report, &error), 0);
	return report;
}

struct kvp_recovery_report fake_store_recover(bool dry_run)
{
	struct kvp_registrar *registrar = fake_store_registrar("store");
	struct kvp_recovery_report report;

	fake_store->undo_calls = 0;
	report = recover(registrar, dry_run);
	kvp_registrar_free(registrar);
	return report;
}

struct kvp_recovery_report fake_store_recover_alone(void)
{
	return recover(NULL, false);
}
