// SPDX-License-Identifier: LGPL-2.1-or-later
/* Buffer lists: empty buffers are dealt with here, so that parallel lists stay aligned. */
#include <inttypes.h>
#include <stdlib.h>

#include "transaction.h"

struct kvp_list {
	enum kvp_empty policy;
	bool sealed;
	struct kvp_buffer *buffers;	/* those with bytes */
	uint32_t *index;		/* the caller's index of each of them */
	uint32_t count;
	uint32_t buffers_room, index_room;
	uint32_t *empty;		/* the caller's indices of the others */
	uint32_t empty_count;
	uint32_t empty_room;
	uint32_t added;
	struct kvp_error error;		/* the first failure; err 0: none */
};

KVP_EXPORT int kvp_list_new(enum kvp_empty policy, struct kvp_list **list)
{
	if (!list)
		return -EINVAL;
	*list = NULL;
	if (policy != KVP_EMPTY_REJECT && policy != KVP_EMPTY_SKIP)
		return -EINVAL;
	*list = calloc(1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	(*list)->policy = policy;
	return 0;
}

static int add_empty(struct kvp_list *list)
{
	if (kvp_array_grow(&list->empty, list->empty_count, &list->empty_room,
			   sizeof(*list->empty)))
		return -ENOMEM;
	list->empty[list->empty_count++] = list->added;
	return 0;
}

static int add_buffer(struct kvp_list *list, const struct kvp_buffer *buffer)
{
	if (kvp_array_grow(&list->buffers, list->count, &list->buffers_room,
			   sizeof(*list->buffers)) ||
	    kvp_array_grow(&list->index, list->count, &list->index_room, sizeof(*list->index)))
		return -ENOMEM;
	list->buffers[list->count] = *buffer;
	list->index[list->count++] = list->added;
	return 0;
}

static int list_add(struct kvp_list *list, const struct kvp_buffer *buffer)
{
	const uint32_t at = list->added;
	int err;

	if (!buffer)
		return kvp_fail(&list->error, -EINVAL, KVP_PHASE_LIST, at, NULL, NULL,
				"buffer %" PRIu32 ": no buffer was given", at);
	if (!buffer->addr && buffer->length)
		return kvp_fail(&list->error, -EINVAL, KVP_PHASE_LIST, at, NULL,
				"was it allocated?",
				"buffer %" PRIu32 ": %" PRIu64 " bytes at a NULL address", at,
				buffer->length);
	if (buffer->flags & ~KVP_BUFFER_READ_ONLY)
		return kvp_fail(&list->error, -EINVAL, KVP_PHASE_LIST, at, NULL,
				"KVP_BUFFER_READ_ONLY is the only flag",
				"buffer %" PRIu32 ": unknown flags 0x%" PRIx32, at, buffer->flags);
	err = buffer->length ? add_buffer(list, buffer) : add_empty(list);
	if (err)
		return kvp_fail(&list->error, err, KVP_PHASE_LIST, at, NULL, NULL,
				"buffer %" PRIu32 ": no memory to add it to the list", at);
	list->added++;
	return 0;
}

/*
 * A failed add ends the list: were later ones taken, a caller that overlooked
 * the failure would go on with indices that are off by one.
 */
KVP_EXPORT int kvp_list_add(struct kvp_list *list, const struct kvp_buffer *buffer)
{
	if (list->error.err)
		return list->error.err;
	if (list->sealed)
		return -EINVAL;
	return list_add(list, buffer);
}

static int repeat(const struct kvp_list *list, struct kvp_error *error)
{
	if (error) {
		*error = list->error;
		error->repeated = 1;
	}
	return list->error.err;
}

KVP_EXPORT int kvp_list_seal(struct kvp_list *list, struct kvp_error *error)
{
	if (list->error.err)
		return repeat(list, error);
	if (list->policy == KVP_EMPTY_REJECT && list->empty_count) {
		kvp_fail(&list->error, -EINVAL, KVP_PHASE_LIST, list->empty[0], NULL,
			 "skip them with KVP_EMPTY_SKIP, or find all with kvp_list_empty()",
			 "%" PRIu32 " of %" PRIu32 " buffers are empty, the first is buffer %"
			 PRIu32, list->empty_count, list->added, list->empty[0]);
		if (error)
			*error = list->error;
		return list->error.err;
	}
	list->sealed = true;
	return 0;
}

int kvp_list_ready(const struct kvp_list *list, struct kvp_error *error)
{
	if (!list)
		return kvp_fail(error, -EINVAL, KVP_PHASE_LIST, KVP_NONE, NULL, NULL,
				"no buffer list was given");
	if (list->error.err)
		return repeat(list, error);
	if (!list->sealed)
		return kvp_fail(error, -EINVAL, KVP_PHASE_LIST, KVP_NONE, NULL,
				"call kvp_list_seal() before", "the buffer list is not sealed");
	if (!list->count)
		return kvp_fail(error, -EINVAL, KVP_PHASE_LIST, KVP_NONE, NULL,
				"don't register a list without bytes",
				"the buffer list has nothing to register: %" PRIu32
				" buffers were added, all empty", list->added);
	return 0;
}

KVP_EXPORT const struct kvp_buffer *kvp_list_buffers(const struct kvp_list *list, uint32_t *count)
{
	*count = list->sealed ? list->count : 0;
	return list->sealed ? list->buffers : NULL;
}

uint64_t kvp_list_length(const struct kvp_list *list, uint32_t *count)
{
	const struct kvp_buffer *buffers = kvp_list_buffers(list, count);
	uint64_t length = 0;
	uint32_t i;

	for (i = 0; i < *count; i++)
		length += buffers[i].length;
	return length;
}

KVP_EXPORT const uint32_t *kvp_list_index(const struct kvp_list *list, uint32_t *count)
{
	*count = list->sealed ? list->count : 0;
	return list->sealed ? list->index : NULL;
}

KVP_EXPORT const uint32_t *kvp_list_empty(const struct kvp_list *list, uint32_t *count)
{
	*count = list->empty_count;
	return list->empty;
}

KVP_EXPORT void kvp_list_free(struct kvp_list *list)
{
	if (!list)
		return;
	free(list->buffers);
	free(list->index);
	free(list->empty);
	free(list);
}
