#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Make a table, and a JSON file, of the lines that benchmarks print.

report.py LINES [JSON]. Every row has sides that did the same; the last column
is how often the median of the first side goes into that of the others.
"""
import datetime
import json
import os
import statistics
import sys


def read(path):
    """The samples of each row, size and side, in the order in which they appear."""
    rows = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("{"):
                continue
            sample = json.loads(line)
            sides = rows.setdefault((sample["row"], sample["size"], sample["unit"]), {})
            sides.setdefault(sample["side"], []).append(sample["value"])
    return rows


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def summary(rows):
    result = []
    for (row, size, unit), sides in rows.items():
        # Sides take turns in going first: the order of names in the first round is theirs.
        first = statistics.median(next(iter(sides.values())))
        for side, values in sides.items():
            low, high = quartiles(values)
            median = statistics.median(values)
            result.append({
                "row": row, "size": size, "unit": unit, "side": side, "samples": len(values),
                "median": median, "low": low, "high": high,
                "times_the_first": median / first if first else None,
            })
    return result


def scaled(value, unit):
    if unit != "ns":
        return f"{value:,.0f} {unit}"
    for factor, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.3g} ns"


def table(entries):
    lines = ["| row | size | side | median | quartiles | times the first |", "|---|---|---|---|---|---|"]
    for entry in entries:
        ratio = entry["times_the_first"]
        lines.append("| {row} | {size:,} | {side} | {} | {} to {} | {} |".format(
            scaled(entry["median"], entry["unit"]), scaled(entry["low"], entry["unit"]),
            scaled(entry["high"], entry["unit"]), "" if ratio is None else f"{ratio:.2f}", **entry))
    return "\n".join(lines)


def journal_cost(rows):
    """What the journal takes of the time of bare registrations, by how many buffers."""
    costs = {}
    for (row, size, _), sides in rows.items():
        if row != "register buffers":
            continue
        # Round by round, so that what slows a round down slows all of it.
        pairs = zip(sides["transaction with journal"], sides["transaction without journal"])
        extra = statistics.median(journaled - plain for journaled, plain in pairs)
        costs[size] = 100 * extra / statistics.median(sides["loop of ibv_reg_mr"])
    return costs


def main():
    rows = read(sys.argv[1])
    entries = summary(rows)
    if not entries:
        sys.exit("report.py: no benchmark printed a line")
    print(table(entries))
    costs = journal_cost(rows)
    for size, percent in costs.items():
        print(f"journal of {size:,} buffers: {percent:.2g} percent of their registration")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as out:
            json.dump({
                "date": datetime.date.today().isoformat(),
                "processors": os.cpu_count(),
                "rows": entries,
                "journal_percent": costs,
            }, out, indent=1)


if __name__ == "__main__":
    main()
