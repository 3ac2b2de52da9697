// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which buffers share bytes, in O(n log n).
 *
 * In the order of their addresses it is seen whether any do. None does, nearly
 * always. Which, is found out if need be: the ends of all buffers cut the address
 * space into stretches. The buffers are painted onto the stretches in the order of
 * their indices, each asking first who painted there before. Two ranges share a
 * stretch when one of them covers the other's last stretch: so a question has two
 * parts, who covers my last stretch, and whose last stretch is one of mine. A
 * segment tree over the stretches answers both in logarithmic time.
 */
#include <stdlib.h>

#include "transaction.h"

struct canvas {
	uint64_t *ends;		/* sorted, each once */
	size_t end_count;
	size_t leaves;		/* a power of two */
	uint32_t *whole;	/* by node: lowest paint that covers all of it at once */
	uint32_t *last;		/* by node: lowest paint whose last stretch is in it */
};

static bool has_range(const struct kvp_buffer *buffer)
{
	return buffer->length && buffer->length <= UINT64_MAX - (uintptr_t)buffer->addr;
}

static int by_address(const void *left, const void *right)
{
	const struct kvp_buffer *one = *(const struct kvp_buffer *const *)left;
	const struct kvp_buffer *other = *(const struct kvp_buffer *const *)right;

	return ((uintptr_t)one->addr > (uintptr_t)other->addr) -
	       ((uintptr_t)one->addr < (uintptr_t)other->addr);
}

int kvp_sorted_init(struct kvp_sorted *sorted, const struct kvp_buffer *buffers, uint32_t count)
{
	bool ascending = true;
	uint64_t end = 0;
	uint32_t i, n = 0;

	*sorted = (struct kvp_sorted){ .buffers = calloc(count, sizeof(*sorted->buffers)) };
	if (!sorted->buffers)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (!has_range(&buffers[i]))
			continue;
		if (n && (uintptr_t)sorted->buffers[n - 1]->addr > (uintptr_t)buffers[i].addr)
			ascending = false;
		sorted->buffers[n++] = &buffers[i];
	}
	/* Lists are made in this order, most of them. */
	if (!ascending)
		qsort(sorted->buffers, n, sizeof(*sorted->buffers), by_address);
	sorted->count = n;
	for (i = 0; i < n; i++) {
		const uint64_t start = (uintptr_t)sorted->buffers[i]->addr;

		if (start < end)
			sorted->overlap = true;
		if (start + sorted->buffers[i]->length > end)
			end = start + sorted->buffers[i]->length;
	}
	sorted->end = end;
	return 0;
}

void kvp_sorted_free(struct kvp_sorted *sorted)
{
	free(sorted->buffers);
	*sorted = (struct kvp_sorted){ 0 };
}

static int compare_ends(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void canvas_free(struct canvas *canvas)
{
	free(canvas->ends);
	free(canvas->whole);
	free(canvas->last);
}

static int canvas_init(struct canvas *canvas, const struct kvp_buffer *buffers, uint32_t count)
{
	size_t filled = 0, kept = 0, i;

	*canvas = (struct canvas){ .leaves = 1 };
	canvas->ends = calloc((size_t)count * 2, sizeof(*canvas->ends));
	if (!canvas->ends)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (!has_range(&buffers[i]))
			continue;
		canvas->ends[filled++] = (uintptr_t)buffers[i].addr;
		canvas->ends[filled++] = (uintptr_t)buffers[i].addr + buffers[i].length;
	}
	qsort(canvas->ends, filled, sizeof(*canvas->ends), compare_ends);
	for (i = 0; i < filled; i++)
		if (!kept || canvas->ends[i] != canvas->ends[kept - 1])
			canvas->ends[kept++] = canvas->ends[i];
	canvas->end_count = kept;
	while (canvas->leaves < kept)
		canvas->leaves *= 2;
	canvas->whole = calloc(canvas->leaves * 2, sizeof(*canvas->whole));
	canvas->last = calloc(canvas->leaves * 2, sizeof(*canvas->last));
	if (!canvas->whole || !canvas->last) {
		canvas_free(canvas);
		return -ENOMEM;
	}
	for (i = 0; i < canvas->leaves * 2; i++) {
		canvas->whole[i] = KVP_NONE;
		canvas->last[i] = KVP_NONE;
	}
	return 0;
}

static size_t stretch(const struct canvas *canvas, uint64_t end)
{
	const uint64_t *found = bsearch(&end, canvas->ends, canvas->end_count,
					sizeof(*canvas->ends), compare_ends);

	return (size_t)(found - canvas->ends);
}

static uint32_t lower(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The lowest paint on the stretches from `from` up to, without, `to`. */
static uint32_t canvas_first(const struct canvas *canvas, size_t from, size_t to)
{
	size_t left = from + canvas->leaves, right = to + canvas->leaves, node;
	uint32_t first = KVP_NONE;

	for (node = right - 1; node; node /= 2)
		first = lower(first, canvas->whole[node]);
	for (; left < right; left /= 2, right /= 2) {
		if (left & 1)
			first = lower(first, canvas->last[left++]);
		if (right & 1)
			first = lower(first, canvas->last[--right]);
	}
	return first;
}

static void canvas_paint(struct canvas *canvas, size_t from, size_t to, uint32_t paint)
{
	size_t left = from + canvas->leaves, right = to + canvas->leaves, node;

	for (node = right - 1; node; node /= 2)
		canvas->last[node] = lower(canvas->last[node], paint);
	for (; left < right; left /= 2, right /= 2) {
		if (left & 1) {
			canvas->whole[left] = lower(canvas->whole[left], paint);
			left++;
		}
		if (right & 1) {
			right--;
			canvas->whole[right] = lower(canvas->whole[right], paint);
		}
	}
}

int kvp_overlap_find(const struct kvp_buffer *buffers, uint32_t count, uint32_t *earlier)
{
	struct canvas canvas;
	int err = canvas_init(&canvas, buffers, count);
	uint32_t i;

	if (err)
		return err;
	for (i = 0; i < count; i++) {
		size_t from, to;

		earlier[i] = KVP_NONE;
		if (!has_range(&buffers[i]))
			continue;
		from = stretch(&canvas, (uintptr_t)buffers[i].addr);
		to = stretch(&canvas, (uintptr_t)buffers[i].addr + buffers[i].length);
		earlier[i] = canvas_first(&canvas, from, to);
		canvas_paint(&canvas, from, to, i);
	}
	canvas_free(&canvas);
	return 0;
}
