// SPDX-License-Identifier: LGPL-2.1-or-later
/* Carrying a plan out and undoing it: what calls registrars. */
#include <inttypes.h>

#include "transaction.h"

static const char *register_advice(const struct kvp_registrar *registrar,
				   const struct kvp_chunk *chunk, int err)
{
	if (!registrar->verbs)
		return NULL;
	switch (err) {
	case -ENOMEM:
		return "raise RLIMIT_MEMLOCK (ulimit -l), or register less: the device may be full";
	case -EINVAL:
	case -EOPNOTSUPP:
		return "check that the device has all of the access flags";
	case -EFAULT:
		/* They pin for writing whatever the access asked for. */
		if (chunk->flags & KVP_BUFFER_READ_ONLY)
			return "kernels before 6.2 register no memory that is mapped read only: map it with KVP_ACCESS_WRITE";
		return "check that the memory is still mapped with the access asked for";
	default:
		return NULL;
	}
}

static int fail_call(const struct kvp_registration *registration, const struct kvp_entry *entry,
		     int ret, enum kvp_phase phase, struct kvp_error *error)
{
	const struct kvp_registrar *registrar = registration->set.registrars[entry->registrar];
	const bool undo = phase == KVP_PHASE_UNDO;
	const char *device = kvp_registrar_device(registrar, entry->device);
	const char *what = undo ? "unregister" : "register";
	const char *advice;
	bool foreign;
	int err = kvp_returned(ret, &foreign);

	advice = undo ? "do not use this memory before kvp_unregister() has succeeded" :
			register_advice(registrar, &entry->chunk, err);
	if (foreign)
		return kvp_fail(error, err, phase, entry->index, device, advice,
				"buffer %" PRIu32 ": can't %s %" PRIu64 " bytes at 0x%" PRIxPTR
				" (offset %" PRIu64 "): the registrar returned code %d",
				entry->index, what, entry->chunk.length,
				(uintptr_t)entry->chunk.addr, entry->offset, ret);
	return kvp_fail(error, err, phase, entry->index, device, advice,
			"buffer %" PRIu32 ": can't %s %" PRIu64 " bytes at 0x%" PRIxPTR
			" (offset %" PRIu64 ")", entry->index, what, entry->chunk.length,
			(uintptr_t)entry->chunk.addr, entry->offset);
}

static int fail_record(const struct kvp_entry *entry, int err, struct kvp_error *error)
{
	return kvp_fail(error, err, KVP_PHASE_REGISTER, entry->index, NULL,
			"see whether the directory of the journal can be written",
			"buffer %" PRIu32 ": can't write the registration to the journal",
			entry->index);
}

static int register_entry(struct kvp_registration *registration, uint32_t n,
			  struct kvp_error *error)
{
	struct kvp_entry *entry = &registration->entries[n];
	const struct kvp_registrar *registrar = registration->set.registrars[entry->registrar];
	void *cookie = NULL;
	int ret, err;

	err = kvp_record_step(registration, n, KVP_STEP_INTENT, 0);
	if (err)
		return fail_record(entry, err, error);
	ret = registrar->ops.register_chunk(registrar->arg, entry->device, &entry->chunk, &cookie);
	if (ret) {
		(void)kvp_record_step(registration, n, KVP_STEP_REFUSED, ret);
		return fail_call(registration, entry, ret, KVP_PHASE_REGISTER, error);
	}
	entry->cookie = cookie;
	err = kvp_record_step(registration, n, KVP_STEP_REGISTERED, 0);
	return err ? fail_record(entry, err, error) : 0;
}

int kvp_execute_register(struct kvp_registration *registration, struct kvp_error *error)
{
	uint32_t n;
	int err;

	for (n = 0; n < registration->count; n++) {
		err = register_entry(registration, n, error);
		if (err)
			return err;
	}
	return 0;
}

static int undo_entry(struct kvp_registration *registration, uint32_t n, struct kvp_error *error)
{
	struct kvp_entry *entry = &registration->entries[n];
	const struct kvp_registrar *registrar = registration->set.registrars[entry->registrar];
	int ret;

	(void)kvp_record_step(registration, n, KVP_STEP_UNDO_INTENT, 0);
	ret = registrar->ops.unregister_chunk(registrar->arg, entry->device, &entry->chunk,
					      entry->cookie);
	if (ret) {
		entry->quarantined = 1;
		(void)kvp_record_step(registration, n, KVP_STEP_QUARANTINED, ret);
		return fail_call(registration, entry, ret, KVP_PHASE_UNDO, error);
	}
	entry->quarantined = 0;
	entry->cookie = NULL;
	(void)kvp_record_step(registration, n, KVP_STEP_UNDONE, 0);
	return 0;
}

uint32_t kvp_execute_undo(struct kvp_registration *registration, struct kvp_error *first)
{
	uint32_t failed = 0, n;

	for (n = registration->count; n--;) {
		const enum kvp_step step = kvp_record_get(&registration->record, n);

		if (step != KVP_STEP_REGISTERED && step != KVP_STEP_QUARANTINED)
			continue;
		if (undo_entry(registration, n, failed ? NULL : first))
			failed++;
	}
	return failed;
}
