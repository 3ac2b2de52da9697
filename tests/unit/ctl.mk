# What the tests of the command line tool need beside the library.
UNIT_EXTRA_test_ctl_parse := tools/parse.c
UNIT_EXTRA_test_ctl_maps := tools/maps.c tools/parse.c
UNIT_EXTRA_test_ctl_format := tools/json.c tools/format.c \
	$(patsubst %,tools/format_%.c,pool stats event span)
UNIT_LIBS_test_ctl_format := -ljson-c
UNIT_EXTRA_test_ctl_journal := tools/format_journal.c tools/format.c tools/json.c
UNIT_LIBS_test_ctl_journal := -ljson-c
UNIT_EXTRA_test_ctl_recover := tools/ctl_recover.c tools/ctl.c tools/parse.c tools/json.c \
	tools/format.c tools/format_pool.c tools/format_journal.c
UNIT_LIBS_test_ctl_recover := -ljson-c
