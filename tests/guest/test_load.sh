#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module loads and unloads, again and again.
for n in $(seq 20); do
	rmmod kvpool && [ ! -e /dev/kvpool/control ] && modprobe kvpool && [ -c /dev/kvpool/control ] || {
		echo "not ok - load and unload 20 times: round $n"
		exit 1
	}
done
chgrp kvpool /dev/kvpool/control
echo "ok - load and unload 20 times"
