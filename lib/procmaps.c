// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of mapped files, from /proc/self/maps. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"
#include "procmaps.h"

static void open_maps(struct kvp_procmaps *maps)
{
	int fd;

	maps->tried = 1;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	maps->file = fdopen(fd, "r");
	if (!maps->file)
		close(fd);
}

static bool next_line(struct kvp_procmaps *maps)
{
	int path = 0;

	if (getline(&maps->line, &maps->size, maps->file) < 0)
		return false;
	maps->line[strcspn(maps->line, "\n")] = '\0';
	/* START-END MODE OFFSET MAJOR:MINOR INODE PATH, the path after padding. */
	if (sscanf(maps->line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &maps->start,
		   &maps->end, &path) < 2 || !path)
		return false;
	maps->path = maps->line + path;
	return true;
}

void kvp_procmaps_path(struct kvp_procmaps *maps, uint64_t addr, char *path, size_t size)
{
	path[0] = '\0';
	if (!maps->tried)
		open_maps(maps);
	while (maps->file && maps->end <= addr)
		if (!next_line(maps)) {
			fclose(maps->file);
			maps->file = NULL;
		}
	if (!maps->file || maps->start > addr)
		return;
	if (snprintf(path, size, "%s", maps->path) >= (int)size)
		memcpy(path + size - 4, "...", 4);
}

void kvp_procmaps_end(struct kvp_procmaps *maps)
{
	if (maps->file)
		fclose(maps->file);
	free(maps->line);
}
