// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading /proc/PID/maps. Another process's memory can't be asked for with
 * the resolve ioctl, which only ever looks at the caller's own, so the tool
 * goes by what this file shows: a path, and no more than that.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "maps.h"
#include "parse.h"

static const char node_prefix[] = "/dev/kvpool/";
static const char deleted_suffix[] = " (deleted)";

int maps_parse_line(char *line, struct maps_line *parsed)
{
	char read, write, execute, share;
	int behind = 0;

	line[strcspn(line, "\n")] = '\0';
	memset(parsed, 0, sizeof(*parsed));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c%c%c %" SCNx64 " %x:%x %" SCNu64 "%n",
		   &parsed->start, &parsed->end, &read, &write, &execute, &share,
		   &parsed->offset, &parsed->major, &parsed->minor, &parsed->inode, &behind) != 10)
		return -EINVAL;
	if (parsed->end <= parsed->start)
		return -EINVAL;
	parsed->readable = read == 'r';
	parsed->writable = write == 'w';
	/* The path starts after padding and goes to the end: it may hold blanks itself. */
	parsed->path = line + behind + strspn(line + behind, " ");
	return 0;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Copy without " (deleted)"; false when the copy does not fit. */
static bool strip_deleted(const char *path, char *copy, size_t size, bool *deleted)
{
	size_t length = strlen(path), cut = strlen(deleted_suffix);

	*deleted = length >= cut && !strcmp(path + length - cut, deleted_suffix);
	if (*deleted)
		length -= cut;
	if (length >= size)
		return false;
	memcpy(copy, path, length);
	copy[length] = '\0';
	return true;
}

static bool classify_pool(const char *path, struct maps_segment *segment)
{
	char copy[sizeof(node_prefix) + KVP_NAME_SIZE];
	const char *identity;
	struct pool_ref ref;
	bool deleted;

	if (!strip_deleted(path, copy, sizeof(copy), &deleted))
		return false;

	/* The module's own file system; how the kernel prefixes it is not promised. */
	identity = copy + (copy[0] == '/');
	if (starts_with(identity, "kvpool:")) {
		if (parse_identity(identity + strlen("kvpool:"), &segment->id,
				   &segment->generation))
			return false;
		segment->match = MAPS_MATCH_IDENTITY;
		return true;
	}

	if (!starts_with(copy, node_prefix))
		return false;
	identity = copy + strlen(node_prefix);
	if (!strcmp(identity, "control") || parse_pool(identity, &ref) || !ref.name[0])
		return false;
	memcpy(segment->name, ref.name, sizeof(segment->name));
	/*
	 * A node is removed when the pool ends, but also when it becomes an
	 * orphan, and replaced when its permissions change. A pool that has the
	 * name now may be another, so a removed node's name finds none.
	 */
	if (!deleted)
		segment->match = MAPS_MATCH_NAME;
	return true;
}

/* Names that the kernel gives to memory of its own, which no device may pin. */
static bool is_kernel_memory(const char *path)
{
	return starts_with(path, "[vvar") || !strcmp(path, "[vdso]") ||
	       !strcmp(path, "[vsyscall]") || !strcmp(path, "[vectors]") ||
	       !strcmp(path, "[uprobes]") || !strcmp(path, "[sigpage]");
}

static enum kvp_kind classify(const struct maps_line *line, struct maps_segment *segment)
{
	const char *path = line->path;

	if (!path[0])
		return KVP_KIND_ANON;
	if (classify_pool(path, segment))
		return KVP_KIND_POOL;
	if (path[0] == '[') {
		if (starts_with(path, "[anon_shmem:"))
			return KVP_KIND_SHMEM;
		return is_kernel_memory(path) ? KVP_KIND_DEVICE : KVP_KIND_ANON;
	}
	if (starts_with(path, "/anon_hugepage"))
		return KVP_KIND_HUGETLB;
	/* "/dev/zero (deleted)" is what shared anonymous memory is called. */
	if (starts_with(path, "/memfd:") || starts_with(path, "/dev/shm/") ||
	    starts_with(path, "/SYSV") || !strcmp(path, "/dev/zero (deleted)"))
		return KVP_KIND_SHMEM;
	if (starts_with(path, "/dev/zero"))
		return KVP_KIND_ANON;
	/* dma-buf and other handles without a path in any file system. */
	if (starts_with(path, "anon_inode:") || starts_with(path, "/dmabuf:"))
		return KVP_KIND_DEVICE;
	if (starts_with(path, "/dev/"))
		return starts_with(path, "/dev/hugepages/") ? KVP_KIND_HUGETLB : KVP_KIND_DEVICE;
	return KVP_KIND_FILE;
}

static bool continues(const struct maps_segment *last, const struct maps_segment *next)
{
	if (last->kind != next->kind || last->readable != next->readable ||
	    last->writable != next->writable || last->match != next->match ||
	    last->major != next->major || last->minor != next->minor ||
	    last->inode != next->inode || strcmp(last->path, next->path))
		return false;
	/* Offsets of anonymous memory mean nothing. */
	return last->kind == KVP_KIND_ANON || last->kind == KVP_KIND_UNMAPPED ||
	       last->offset + last->length == next->offset;
}

/* Append, or grow the last segment. The path of `next` is copied. */
static int append(struct maps *maps, const struct maps_segment *next)
{
	struct maps_segment *segments, *last;

	if (maps->count) {
		last = &maps->segments[maps->count - 1];
		if (continues(last, next)) {
			last->length += next->length;
			return 0;
		}
	}
	segments = reallocarray(maps->segments, maps->count + 1, sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	maps->segments = segments;
	last = &segments[maps->count];
	*last = *next;
	last->path = strdup(next->path);
	if (!last->path)
		return -ENOMEM;
	maps->count++;
	return 0;
}

static int append_hole(struct maps *maps, uint64_t addr, uint64_t end)
{
	struct maps_segment hole = {
		.addr = addr,
		.length = end - addr,
		.kind = KVP_KIND_UNMAPPED,
		.path = "",
	};

	return addr < end ? append(maps, &hole) : 0;
}

static int append_line(struct maps *maps, const struct maps_line *line, uint64_t addr, uint64_t end)
{
	struct maps_segment segment = {
		.addr = line->start > addr ? line->start : addr,
		.readable = line->readable,
		.writable = line->writable,
		.path = (char *)line->path,	/* append() copies it */
		.major = line->major,
		.minor = line->minor,
		.inode = line->inode,
		.start = line->start,
		.end = line->end,
	};

	segment.length = (line->end < end ? line->end : end) - segment.addr;
	segment.offset = line->offset + (segment.addr - line->start);
	segment.kind = classify(line, &segment);
	return append(maps, &segment);
}

int maps_read(FILE *file, uint64_t addr, uint64_t length, struct maps *maps)
{
	uint64_t end = addr + length, covered = addr;
	struct maps_line line;
	char *text = NULL;
	size_t size = 0;
	int err = 0;

	memset(maps, 0, sizeof(*maps));
	for (;;) {
		errno = 0;
		if (getline(&text, &size, file) < 0) {
			if (!feof(file) || ferror(file))
				err = errno ? -errno : -EIO;
			break;
		}
		err = maps_parse_line(text, &line);
		if (err)
			break;
		maps->lines++;
		/* Mappings that change meanwhile may be told twice. */
		if (covered == end || line.end <= covered || line.start >= end)
			continue;
		err = append_hole(maps, covered, line.start > covered ? line.start : covered);
		if (!err)
			err = append_line(maps, &line, covered, end);
		if (err)
			break;
		covered = line.end < end ? line.end : end;
	}
	if (!err)
		err = append_hole(maps, covered, end);
	free(text);
	if (err)
		maps_free(maps);
	return err;
}

void maps_free(struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->count; i++)
		free(maps->segments[i].path);
	free(maps->segments);
	memset(maps, 0, sizeof(*maps));
}
