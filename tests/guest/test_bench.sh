#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The benchmarks, once each and small: that they work, and that counted work, which is
# the same on every machine, has not grown. Times are of no interest here.
cd "$(dirname "$0")/../bench" || exit 1
status=0
for bench in bench_*; do
	BENCH_QUICK=1 "./$bench" | grep -v '^{'
	[ "${PIPESTATUS[0]}" = 0 ] || status=1
done
exit $status
