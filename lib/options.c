// SPDX-License-Identifier: LGPL-2.1-or-later
/* The size rule of option structs, and the rules for names and labels. */
#include "internal.h"

/*
 * No option struct will ever be that large. A caller that forgot KVP_INIT()
 * gives a random size, which must not be read up to.
 */
#define SIZE_LIMIT 4096

int kvp_options_copy(void *known, size_t size, const void *given)
{
	const unsigned char *bytes = given;
	size_t given_size, i;

	memset(known, 0, size);
	if (given) {
		memcpy(&given_size, given, sizeof(given_size));
		if (given_size < sizeof(given_size))
			return -EINVAL;
		if (given_size > SIZE_LIMIT)
			return -E2BIG;
		for (i = size; i < given_size; i++)
			if (bytes[i])
				return -E2BIG;
		memcpy(known, given, given_size < size ? given_size : size);
	}
	memcpy(known, &size, sizeof(size));
	return 0;
}

bool kvp_name_valid(const char *name)
{
	/* ASCII by hand: isalnum() depends on the locale. */
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	size_t length = strnlen(name, KVP_NAME_SIZE);

	return length && length < KVP_NAME_SIZE && strspn(name, allowed) == length;
}

bool kvp_label_valid(const char *label)
{
	const size_t length = strnlen(label, KVP_NAME_SIZE);
	size_t i;

	for (i = 0; i < length; i++)
		if (label[i] < ' ' || label[i] > '~')
			return false;
	return length < KVP_NAME_SIZE;
}
