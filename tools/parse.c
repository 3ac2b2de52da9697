// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words of the command line. strtoull() is not used: it takes blanks, signs
 * and wraps "-1" to a huge number, each of which would hide a typing error.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>

#include "parse.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* Read the digits at *text, at least one, and move behind them. */
static const char *take_digits(const char **text, unsigned int base, uint64_t *value)
{
	const char *p = *text;
	uint64_t sum = 0;

	if ((unsigned int)digit(*p) >= base)
		return "not a number";
	for (; (unsigned int)digit(*p) < base; p++) {
		if (__builtin_mul_overflow(sum, (uint64_t)base, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)digit(*p), &sum))
			return "too large a number, it has to fit in 64 bits";
	}
	*text = p;
	*value = sum;
	return NULL;
}

static bool has_hex_prefix(const char *text)
{
	return text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

/* The same with a base that follows from 0x. */
static const char *take_number(const char **text, uint64_t *value)
{
	if (has_hex_prefix(*text)) {
		*text += 2;
		return take_digits(text, 16, value);
	}
	return take_digits(text, 10, value);
}

const char *parse_number(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t number;
	const char *why;

	why = take_number(&text, &number);
	if (why)
		return why;
	if (*text)
		return "not a number: something follows the digits (hexadecimal starts with 0x)";
	if (number > max)
		return "out of range";
	*value = number;
	return NULL;
}

const char *parse_index(const char *text, uint32_t *value)
{
	const char *why;
	uint64_t number;

	why = parse_number(text, KVP_NONE - 1, &number);
	if (!why)
		*value = (uint32_t)number;
	return why;
}

const char *parse_size(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	const char *why, *suffix;
	unsigned int shift = 0;
	uint64_t number;

	why = take_number(&text, &number);
	if (why)
		return why;
	if (*text == '.' || *text == ',')
		return "fractions are not taken; use the next smaller suffix, such as 1536M for "
		       "1.5G";
	if (*text) {
		/* 0x20 makes the letter lower case in ASCII, and the table is upper case. */
		suffix = memchr(suffixes, *text & ~0x20, sizeof(suffixes) - 1);
		if (!suffix || text[1])
			return "not a size; the suffixes are K, M, G and T, powers of 1024";
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
	}
	if (!number)
		return "a size of 0 bytes; give at least 1";
	if (number > UINT64_MAX >> shift)
		return "too large a size, it has to fit in 64 bits";
	*bytes = number << shift;
	return NULL;
}

const char *parse_mode(const char *text, mode_t *mode)
{
	uint64_t number;

	if (take_digits(&text, 8, &number) || *text)
		return "not octal permission bits, such as 0640";
	if (number & ~(uint64_t)0666)
		return "only read and write bits mean something for a pool: 0 to 0666";
	*mode = (mode_t)number;
	return NULL;
}

/* -1 means "unchanged" to the system calls that take an id, so it is none. */
#define ID_MAX (UINT32_MAX - 1)

const char *parse_user(const char *text, uid_t *uid)
{
	const struct passwd *user;
	uint64_t number;

	if (!parse_number(text, ID_MAX, &number)) {
		*uid = (uid_t)number;
		return NULL;
	}
	user = getpwnam(text);
	if (!user)
		return "no such user, and not a number of one";
	*uid = user->pw_uid;
	return NULL;
}

const char *parse_group(const char *text, gid_t *gid)
{
	const struct group *group;
	uint64_t number;

	if (!parse_number(text, ID_MAX, &number)) {
		*gid = (gid_t)number;
		return NULL;
	}
	group = getgrnam(text);
	if (!group)
		return "no such group, and not a number of one";
	*gid = group->gr_gid;
	return NULL;
}

const char *parse_lifetime(const char *text, enum kvp_lifetime *lifetime)
{
	if (!strcmp(text, "owner"))
		*lifetime = KVP_LIFETIME_OWNER;
	else if (!strcmp(text, "persistent"))
		*lifetime = KVP_LIFETIME_PERSISTENT;
	else
		return "a lifetime is owner or persistent";
	return NULL;
}

static const char not_an_identity[] =
	"not an identity, which is ID.GENERATION, both decimal and at least 1";

const char *parse_identity(const char *text, uint32_t *id, uint64_t *generation)
{
	uint64_t number, second;

	if (take_digits(&text, 10, &number) || *text != '.')
		return not_an_identity;
	text++;
	if (take_digits(&text, 10, &second) || *text)
		return not_an_identity;
	if (!number || number > UINT32_MAX || !second)
		return not_an_identity;
	*id = (uint32_t)number;
	*generation = second;
	return NULL;
}

/*
 * The characters of a name contain neither ':' nor '.', so that the forms
 * can't be confused, whatever a pool is called.
 */
static const char name_characters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

const char *parse_pool(const char *text, struct pool_ref *ref)
{
	const char *id_text;
	size_t length;
	uint64_t number;

	memset(ref, 0, sizeof(*ref));
	if (!strncmp(text, "id:", 3)) {
		id_text = text + 3;
		if (strchr(id_text, '.'))
			return parse_identity(id_text, &ref->id, &ref->generation);
		if (take_digits(&id_text, 10, &number) || *id_text || !number ||
		    number > UINT32_MAX)
			return "not an id, which is a decimal number of at least 1";
		ref->id = (uint32_t)number;
		return NULL;
	}
	length = strlen(text);
	if (!length || strspn(text, name_characters) != length)
		return "not a pool; write NAME, id:ID or id:ID.GENERATION";
	if (length >= sizeof(ref->name))
		return "longer than the name of a pool can be, 63 characters";
	memcpy(ref->name, text, length + 1);
	return NULL;
}

/* START-END, hexadecimal with or without 0x. */
static const char *take_bounds(const char *text, uint64_t *start, uint64_t *end)
{
	const char *why;

	if (has_hex_prefix(text))
		text += 2;
	why = take_digits(&text, 16, start);
	if (why)
		return why;
	if (*text != '-')
		return "not a range; write START-END in hexadecimal, or ADDR LENGTH";
	text++;
	if (has_hex_prefix(text))
		text += 2;
	why = take_digits(&text, 16, end);
	if (why)
		return why;
	if (*text)
		return "not a range: something follows END, which is hexadecimal";
	return NULL;
}

const char *parse_range(const char *text, const char *length_text, uint64_t *addr,
			uint64_t *length)
{
	uint64_t start, end, bytes;
	const char *why;

	if (!length_text) {
		why = take_bounds(text, &start, &end);
		if (why)
			return why;
		if (end < start)
			return "END lies before START";
		if (end == start)
			return "the range is empty, since END is START; END is the first byte "
			       "behind it";
		*addr = start;
		*length = end - start;
		return NULL;
	}

	why = parse_number(text, UINT64_MAX, &start);
	if (why)
		return why;
	/* parse_size() refuses 0 with a cause that speaks of sizes: say what it means here. */
	if (!parse_number(length_text, UINT64_MAX, &bytes) && !bytes)
		return "the length is 0, and nothing backs an empty range; give at least 1 byte";
	why = parse_size(length_text, &bytes);
	if (why)
		return why;
	if (__builtin_add_overflow(start, bytes, &end))
		return "the range wraps around the end of the address space";
	*addr = start;
	*length = bytes;
	return NULL;
}
