// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_journal.h"

static char directory[64], found[400], types[8192];

const char *fake_journal_dir(void)
{
	strcpy(directory, "/tmp/kvpool-unit-XXXXXX");
	assert_non_null(mkdtemp(directory));
	return directory;
}

static unsigned int each_file(void (*act)(const char *path))
{
	DIR *open = opendir(directory);
	const struct dirent *entry;
	unsigned int count = 0;

	while (open && (entry = readdir(open))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		count++;
		snprintf(found, sizeof(found), "%s/%s", directory, entry->d_name);
		if (act)
			act(found);
	}
	if (open)
		closedir(open);
	return count;
}

static void remove_file(const char *path)
{
	assert_int_equal(remove(path), 0);
}

void fake_journal_remove(void)
{
	each_file(remove_file);
	rmdir(directory);
}

unsigned int fake_journal_files(void)
{
	return each_file(NULL);
}

const char *fake_journal_path(void)
{
	return each_file(NULL) == 1 ? found : NULL;
}

void *fake_journal_load(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	*size = (size_t)st.st_size;
	bytes = malloc(*size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

void fake_journal_store(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

void fake_journal_rewrite(void (*change)(struct kvp_journal_file_record *file))
{
	union kvp_journal_any_record record = { 0 };
	const char *path = fake_journal_path();
	size_t size;
	char *bytes = fake_journal_load(path, &size);

	memcpy(&record, bytes, sizeof(record.file));
	change(&record.file);
	kvp_journal_seal(&record.head, KVP_JOURNAL_FILE, 0);
	memcpy(bytes, &record, sizeof(record.file));
	fake_journal_store(path, bytes, size);
	free(bytes);
}

const char *fake_journal_types(void)
{
	static const char *const names[] = {
		NULL, "file", "begin", "pool", "device", "intent", "outcome", "commit", "undo", "undone", "end",
	};
	const char *path = fake_journal_path();
	size_t size, at = 0, used = 0;
	struct kvp_journal_head head;
	uint64_t sequence = 0;
	char *bytes;

	assert_non_null(path);
	bytes = fake_journal_load(path, &size);
	/* Zeros are space that is reserved. */
	while (at < size && bytes[at]) {
		assert_true(size - at >= sizeof(head));
		memcpy(&head, bytes + at, sizeof(head));
		assert_int_equal(le32toh(head.magic), KVP_JOURNAL_MAGIC);
		assert_int_equal(le16toh(head.version), 1);
		assert_in_range(le16toh(head.type), KVP_JOURNAL_FILE, KVP_JOURNAL_END);
		assert_int_equal(le32toh(head.length), kvp_journal_record_size(le16toh(head.type)));
		assert_true(le32toh(head.length) <= size - at);
		assert_int_equal(le32toh(head.checksum),
				 kvp_journal_checksum(bytes + at, le32toh(head.length)));
		assert_int_equal(le64toh(head.sequence), sequence++);
		used += (size_t)snprintf(types + used, sizeof(types) - used, "%s%s", at ? " " : "",
					 names[le16toh(head.type)]);
		at += le32toh(head.length);
	}
	free(bytes);
	return types;
}
