// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl journal show: what a file of a journal says, or all files of a directory. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "ctl.h"
#include "format_journal.h"
#include "json.h"

#define SUFFIX ".journal"

struct show {
	const struct ctl *ctl;
	struct json_object *array;	/* NULL: a single file */
	int status;
};

/* Takes the object. */
static void print(struct show *show, struct json_object *object)
{
	if (json_print(stdout, object, JSON_LINES))
		show->status = ctl_fail_errno(show->ctl, -ENOMEM, NULL,
					      "the journal can't be printed");
}

static void show_file(struct show *show, const char *path)
{
	struct json_object *object = NULL;
	struct kvp_journal *journal;
	struct kvp_error error;
	int condition;

	if (kvp_journal_read(path, &journal, &error)) {
		show->status = ctl_fail(show->ctl, &error);
		return;
	}
	condition = kvp_journal_info(journal)->condition;
	/* It was explained, and all the same nothing can be made of it. */
	if (condition != KVP_JOURNAL_WHOLE && condition != KVP_JOURNAL_TORN)
		show->status = ctl_fail_errno(show->ctl, 0, NULL, "%.150s is %s: %s", path,
					      kvp_journal_condition_name(condition),
					      kvp_journal_info(journal)->reason);
	if (!show->ctl->json)
		format_journal_text(stdout, path, journal);
	else
		object = format_journal_object(path, journal);
	kvp_journal_free(journal);
	if (!show->ctl->json)
		return;
	if (!show->array) {
		print(show, object);
	} else if (!object || json_object_array_add(show->array, object)) {
		json_object_put(object);
		show->status = ctl_fail_errno(show->ctl, -ENOMEM, NULL,
					      "the journal can't be printed");
	}
}

static int is_journal(const struct dirent *entry)
{
	const size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);

	return entry->d_name[0] != '.' && length > suffix &&
	       !strcmp(entry->d_name + length - suffix, SUFFIX);
}

static void show_directory(struct show *show, const char *path)
{
	struct dirent **entries;
	char file[4600];
	int count, i;

	count = scandir(path, &entries, is_journal, alphasort);
	if (count < 0) {
		json_object_put(show->array);
		show->status = ctl_fail_errno(show->ctl, -errno, NULL, "can't read %.200s", path);
		return;
	}
	for (i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%.4096s/%s", path, entries[i]->d_name);
		show_file(show, file);
		free(entries[i]);
	}
	free(entries);
	if (show->array)
		print(show, show->array);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = { CTL_OPTIONS_END };
	struct show show = { .ctl = ctl };
	const char *path;
	struct stat st;

	if (ctl_getopt(ctl, argc, argv, options) != -1)
		return ctl->status;
	if (optind == argc || strcmp(argv[optind], "show"))
		return ctl_usage(ctl, "do what? Give show FILE or show DIR");
	if (optind + 2 != argc)
		return ctl_usage(ctl, "show takes one file or directory");
	path = argv[optind + 1];
	if (stat(path, &st))
		return ctl_fail_errno(ctl, -errno, NULL, "can't find %.200s", path);
	if (!S_ISDIR(st.st_mode)) {
		show_file(&show, path);
		return show.status;
	}
	if (ctl->json) {
		show.array = json_object_new_array();
		if (!show.array)
			return ctl_fail_errno(ctl, -ENOMEM, NULL, "the journals can't be printed");
	}
	show_directory(&show, path);
	return show.status;
}

const struct ctl_command ctl_journal = {
	.name = "journal",
	.summary = "explain journals of registrations",
	.help =
		"usage: kvpoolctl journal show [OPTION]... FILE|DIR\n"
		"Explain a journal, whole or not, or all in a directory: its records, and what may\n"
		"still be registered. Nothing is changed, and the module isn't asked.\n\n"
		"  --json       an object; of a directory an array\n"
		"  -h, --help   this text\n\n"
		"Exit codes: 0 whole or torn, 1 damaged, of a newer format, or no journal.\n",
	.run = run,
};
