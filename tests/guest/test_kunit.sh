#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module's KUnit suites: they run when a module that was built with them is
# loaded, and say in the kernel's log what came of it.
module=/usr/lib/kvpool/kunit/kvpool.ko
# Case and suite, which the log gives after what belongs to them.
rmmod kvpool || exit
lines=$(dmesg | wc -l)
insmod $module || exit
dmesg | tail -n "+$((lines + 1))" | sed 's/^\[[^]]*\] //' >/tmp/kunit
rmmod kvpool && modprobe kvpool && chgrp kvpool /dev/kvpool/control || exit
awk '
	/^ *# Subtest: kvpool/ { suite = $NF; next }
	/^    (not )?ok [0-9]+ / {
		if ($1 == "ok")
			print "ok - kunit: " suite "." $NF
		else
			print "not ok - kunit: " suite "." $NF ":" why
		why = ""
		next
	}
	/^ *(KTAP|[0-9]+\.\.|# Totals|# kvpool)/ { next }
	suite { gsub(/^ +|\r/, ""); why = why " " $0 }
' /tmp/kunit
# A suite that did not run would be missed by nobody.
suites=$(grep -c '^    # Subtest: kvpool' /tmp/kunit)
[ "$suites" = 7 ] || echo "not ok - kunit: all suites: $suites of 7 ran"
! grep -q '^ *not ok' /tmp/kunit
