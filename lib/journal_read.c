// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading a journal: from record to record, as far as they are what was written.
 * A record that the file's end cuts short is torn, and so is one without its first
 * bytes, which are written last: it may be told as not written. Zeros are space
 * that was reserved. Anything else that doesn't fit is damage, behind which nothing
 * is believed.
 */
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

static int __attribute__((format(printf, 3, 4)))
stop(struct kvp_journal *journal, enum kvp_journal_condition condition, const char *format, ...)
{
	va_list args;

	journal->info.condition = condition;
	va_start(args, format);
	vsnprintf(journal->info.reason, sizeof(journal->info.reason), format, args);
	va_end(args);
	return -EBADMSG;
}

/* The first bytes of a header, as many as there are; the rest is what it should be. */
static struct kvp_journal_head head_of(const unsigned char *bytes, size_t left, uint64_t sequence)
{
	struct kvp_journal_head head = {
		.magic = htole32(KVP_JOURNAL_MAGIC),
		.version = htole16(KVP_JOURNAL_VERSION),
		.sequence = htole64(sequence),
	};

	memcpy(&head, bytes, left < sizeof(head) ? left : sizeof(head));
	return head;
}

static int check_version(struct kvp_journal *journal, const struct kvp_journal_head *head,
			 const unsigned char *bytes, size_t left)
{
	const unsigned int version = le16toh(head->version);
	const uint32_t length = le32toh(head->length);

	if (version == KVP_JOURNAL_VERSION)
		return 0;
	/* Magic, version, length and checksum stay where they are in every format. */
	if (version > KVP_JOURNAL_VERSION && left >= sizeof(*head) && length >= sizeof(*head) &&
	    (length > left || le32toh(head->checksum) == kvp_journal_checksum(bytes, length)))
		return stop(journal, KVP_JOURNAL_NEWER, "format version %u, this library knows %u: "
			    "use the library that wrote it", version, KVP_JOURNAL_VERSION);
	return stop(journal, KVP_JOURNAL_DAMAGED, "the version of a record is %u", version);
}

/* Whether a whole record is next. */
static int check(struct kvp_journal *journal, const unsigned char *bytes, size_t left)
{
	const struct kvp_journal_info *info = &journal->info;
	const struct kvp_journal_head head = head_of(bytes, left, info->records);
	const unsigned int type = le16toh(head.type);
	const size_t size = kvp_journal_record_size(type);

	if (le32toh(head.magic) != KVP_JOURNAL_MAGIC) {
		if (!info->records)
			return stop(journal, KVP_JOURNAL_FOREIGN,
				    "does not begin as a journal does");
		return stop(journal, KVP_JOURNAL_DAMAGED, "no record begins there");
	}
	if (check_version(journal, &head, bytes, left))
		return -EBADMSG;
	if (left < offsetof(struct kvp_journal_head, sequence)) {
		/* The lowest bytes come first: what is there of a type may look like another. */
		if (left >= offsetof(struct kvp_journal_head, length) && !size)
			return stop(journal, KVP_JOURNAL_DAMAGED, "a record of unknown type %u",
				    type);
		return stop(journal, KVP_JOURNAL_TORN, "%zu bytes of a record, then the file ends",
			    left);
	}
	if (!size || le32toh(head.length) != size)
		return stop(journal, KVP_JOURNAL_DAMAGED, "a record of type %u with %" PRIu32
			    " bytes, which there is none of", type, le32toh(head.length));
	if (le64toh(head.sequence) != info->records && left >= sizeof(head))
		return stop(journal, KVP_JOURNAL_DAMAGED, "record %" PRIu64 " where %" PRIu32
			    " should be", le64toh(head.sequence), info->records);
	if (left < size)
		return stop(journal, KVP_JOURNAL_TORN, "%zu of %zu bytes of a record of type %s, "
			    "then the file ends", left, size,
			    kvp_journal_type_name((enum kvp_journal_type)type));
	if (le32toh(head.checksum) != kvp_journal_checksum(bytes, size))
		return stop(journal, KVP_JOURNAL_DAMAGED, "the checksum of a record of type %s is "
			    "wrong", kvp_journal_type_name((enum kvp_journal_type)type));
	if (info->records ? type == KVP_JOURNAL_FILE : type != KVP_JOURNAL_FILE)
		return stop(journal, KVP_JOURNAL_DAMAGED, "a record of type %s as number %" PRIu32,
			    kvp_journal_type_name((enum kvp_journal_type)type), info->records);
	return 0;
}

static int next(struct kvp_journal *journal, const unsigned char *bytes, size_t left)
{
	struct kvp_journal_info *info = &journal->info;
	union kvp_journal_any_record raw = { 0 };
	struct kvp_journal_record *record;
	size_t size;
	int err;

	err = check(journal, bytes, left);
	if (err)
		return err;
	memcpy(&raw.head, bytes, sizeof(raw.head));
	size = le32toh(raw.head.length);
	memcpy(&raw, bytes, size);
	err = kvp_array_grow(&journal->records, info->records, &journal->record_room,
			     sizeof(*record));
	if (err)
		return err;
	record = &journal->records[info->records];
	*record = (struct kvp_journal_record){
		.type = (enum kvp_journal_type)le16toh(raw.head.type),
		.offset = info->offset,
		.length = (uint32_t)size,
		.sequence = info->records,
		.entry = KVP_NONE,
		.position = KVP_NONE,
	};
	err = kvp_journal_apply(journal, &raw, record);
	if (err) {
		info->condition = KVP_JOURNAL_DAMAGED;
		return err;
	}
	info->records++;
	info->offset += size;
	return 0;
}

/*
 * Whether space is next that was reserved for records. Half of one may be in it;
 * what is longer than any record is not what a death leaves.
 */
static bool reserved(struct kvp_journal *journal, const unsigned char *bytes, size_t left)
{
	size_t first, end = left;

	for (first = 0; first < left && !bytes[first]; first++)
		;
	if (!journal->info.records || (first < left && first < sizeof(uint64_t)))
		return false;
	if (first == left)
		return true;
	while (!bytes[end - 1])
		end--;
	if (end > sizeof(union kvp_journal_any_record))
		return false;
	stop(journal, KVP_JOURNAL_TORN, "%zu bytes in, a record without its beginning", first);
	return true;
}

/* Whether what was written here is over, and the next transaction not begun. */
static bool restarted(const struct kvp_journal *journal, const unsigned char *bytes, size_t left)
{
	return journal->info.records == 1 && left >= sizeof(uint64_t) &&
	       !memcmp(bytes, KVP_JOURNAL_RESTART, sizeof(uint64_t));
}

/* Whether no more records are next: the rest is none. */
static bool at_end(struct kvp_journal *journal, const unsigned char *bytes, size_t left)
{
	return !left || restarted(journal, bytes, left) || reserved(journal, bytes, left);
}

int kvp_journal_parse(const void *bytes, size_t size, struct kvp_journal **result)
{
	struct kvp_journal *journal = calloc(1, sizeof(*journal));
	int err = 0;

	if (!journal)
		return -ENOMEM;
	journal->info.size = size;
	if (!size)
		stop(journal, KVP_JOURNAL_TORN, "the file is empty");
	while (!err && !at_end(journal, (const unsigned char *)bytes + journal->info.offset,
			       size - journal->info.offset))
		err = next(journal, (const unsigned char *)bytes + journal->info.offset,
			   size - journal->info.offset);
	if (err == -ENOMEM) {
		kvp_journal_free(journal);
		return err;
	}
	*result = journal;
	return 0;
}

/* ---------------------------------------------------------------- the file */

static int load(int fd, size_t size, char **bytes, size_t *got)
{
	ssize_t part;

	*bytes = malloc(size ? size : 1);
	if (!*bytes)
		return -ENOMEM;
	for (*got = 0; *got < size; *got += (size_t)part) {
		part = pread(fd, *bytes + *got, size - *got, (off_t)*got);
		if (part < 0 && errno == EINTR)
			part = 0;
		else if (part < 0)
			return -errno;
		else if (!part)
			break;
	}
	return 0;
}

static void look(struct kvp_journal_info *info)
{
	struct kvp_process writer = {
		.start = info->start,
		.pid_ns = info->pid_namespace,
		.time_ns = info->time_namespace,
		.pid = (uint32_t)info->pid,
	};
	struct kvp_process self;

	memcpy(writer.boot_id, info->boot_id, sizeof(writer.boot_id));
	if (info->records && !kvp_process_self(&self))
		info->liveness = kvp_process_look(&writer, &self);
}

/* Of a file whose writer is quicker than its reader, which ends nobody's patience but this. */
#define MOST_READS 100

/* Where a journal that was read is damaged. */
struct damage {
	uint64_t offset;
	size_t size;
	union kvp_journal_any_record record;	/* `size` bytes of what is there */
};

/* `damage`: its size is 0 where there is none. */
static int read_once(int fd, struct kvp_journal **journal, struct damage *damage)
{
	const struct kvp_journal_info *info;
	char *bytes = NULL;
	size_t got = 0;
	struct stat st;
	int err = 0;

	memset(damage, 0, sizeof(*damage));
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if ((uint64_t)st.st_size > KVP_JOURNAL_SIZE_MAX)
		err = -EFBIG;
	if (!err)
		err = load(fd, (size_t)st.st_size, &bytes, &got);
	if (!err)
		err = kvp_journal_parse(bytes, got, journal);
	if (!err) {
		look(&(*journal)->info);
		info = &(*journal)->info;
		if (info->condition == KVP_JOURNAL_DAMAGED) {
			damage->offset = info->offset;
			damage->size = got - info->offset < sizeof(damage->record) ?
				       got - info->offset : sizeof(damage->record);
			memcpy(&damage->record, bytes + info->offset, damage->size);
		}
	}
	free(bytes);
	return err;
}

static bool may_be_written(const struct kvp_journal_info *info)
{
	return info->liveness != KVP_LIVENESS_DEAD && info->liveness != KVP_LIVENESS_OTHER_BOOT;
}

int kvp_journal_read_fd(int fd, const char *path, struct kvp_journal **journal,
			struct kvp_error *error)
{
	struct damage damage, earlier = { 0 };
	unsigned int reads = 1;
	int err;

	err = read_once(fd, journal, &damage);
	/*
	 * What is written while it is read can be there in part, the later part even: pages
	 * are copied one by one. Such damage does not stay where it is; what stays is none of
	 * the writer's doing.
	 */
	while (!err && damage.size && may_be_written(&(*journal)->info) && reads++ < MOST_READS &&
	       memcmp(&damage, &earlier, sizeof(damage))) {
		kvp_journal_free(*journal);
		earlier = damage;
		err = read_once(fd, journal, &damage);
	}
	if (err)
		return kvp_fail(error, err, KVP_PHASE_JOURNAL, KVP_NONE, NULL,
				err == -EINVAL ? "give a regular file" : NULL,
				"can't read the journal %.200s", path);
	return 0;
}

KVP_EXPORT int kvp_journal_read(const char *path, struct kvp_journal **journal,
				struct kvp_error *error)
{
	/* It must not wait for a writer of a pipe. */
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return kvp_fail(error, -errno, KVP_PHASE_JOURNAL, KVP_NONE, NULL, NULL,
				"can't open the journal %.200s", path);
	err = kvp_journal_read_fd(fd, path, journal, error);
	close(fd);
	return err;
}

KVP_EXPORT void kvp_journal_free(struct kvp_journal *journal)
{
	uint32_t i;

	if (!journal)
		return;
	for (i = 0; i < journal->info.transactions; i++) {
		free(journal->entry_numbers[i].positions);
		free(journal->device_numbers[i].positions);
		free(journal->pool_numbers[i].positions);
	}
	free(journal->entry_numbers);
	free(journal->device_numbers);
	free(journal->pool_numbers);
	free(journal->transactions);
	free(journal->entries);
	free(journal->pools);
	free(journal->devices);
	free(journal->records);
	free(journal);
}

KVP_EXPORT const struct kvp_journal_info *kvp_journal_info(const struct kvp_journal *journal)
{
	return &journal->info;
}

KVP_EXPORT const struct kvp_journal_record *
kvp_journal_record(const struct kvp_journal *journal, uint32_t n)
{
	return n < journal->info.records ? &journal->records[n] : NULL;
}

KVP_EXPORT const struct kvp_journal_transaction *
kvp_journal_transaction(const struct kvp_journal *journal, uint32_t n)
{
	return n < journal->info.transactions ? &journal->transactions[n] : NULL;
}

KVP_EXPORT const struct kvp_journal_pool *
kvp_journal_pool(const struct kvp_journal *journal, uint32_t n)
{
	return n < journal->info.pools ? &journal->pools[n] : NULL;
}

KVP_EXPORT const struct kvp_journal_device *
kvp_journal_device(const struct kvp_journal *journal, uint32_t n)
{
	return n < journal->info.devices ? &journal->devices[n] : NULL;
}

KVP_EXPORT const struct kvp_journal_entry *
kvp_journal_entry(const struct kvp_journal *journal, uint32_t n)
{
	return n < journal->info.entries ? &journal->entries[n] : NULL;
}
