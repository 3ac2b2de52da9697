#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draw curves of the rows that were measured at several sizes, as SVG.

plot.py JSON SVG. A panel a row, both axes logarithmic, a line a side: its
medians, with a bar from quartile to quartile.
"""
import json
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, COLUMNS = 460, 300, 2
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 62
COLORS = ("#0b62a4", "#d1570c", "#3a8f3a", "#8b5fbf")


def panels(entries):
    """Rows with more than one size: {row: {side: [entry, ...]}}."""
    rows = {}
    for entry in entries:
        if entry["unit"] == "ns":
            rows.setdefault(entry["row"], {}).setdefault(entry["side"], []).append(entry)
    return {row: sides for row, sides in rows.items()
            if len({entry["size"] for side in sides.values() for entry in side}) > 1}


def duration(value):
    for factor, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if value >= factor:
            return f"{value / factor:g} {name}"
    return f"{value:g} ns"


def amount(value, row):
    if row.endswith("bytes"):
        return f"{value >> 30} GiB" if value >= 1 << 30 else f"{value >> 20} MiB"
    return f"{value:,}"


def scale(low, high, start, end):
    """Logarithmic, from values to places."""
    low, high = math.log(low), math.log(high)
    return lambda value: start + (math.log(value) - low) / ((high - low) or 1) * (end - start)


def panel(row, sides):
    entries = [entry for side in sides.values() for entry in side]
    sizes = sorted({entry["size"] for entry in entries})
    low = 10 ** math.floor(math.log10(min(entry["low"] for entry in entries)))
    high = 10 ** math.ceil(math.log10(max(entry["high"] for entry in entries)))
    x = scale(sizes[0], sizes[-1], LEFT + 12, WIDTH - RIGHT - 12)
    y = scale(low, high, HEIGHT - BOTTOM, TOP)
    out = [f'<text x="{LEFT}" y="18" class="title">{escape(row)}</text>']
    step = low
    while step <= high * 1.01:
        out.append(f'<path d="M{LEFT} {y(step):.1f}H{WIDTH - RIGHT}" class="grid"/>'
                   f'<text x="{LEFT - 5}" y="{y(step) + 4:.1f}" class="end">{duration(step)}</text>')
        step *= 10
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 16}" class="middle">'
                   f'{amount(size, row)}</text>')
    for number, (name, side) in enumerate(sides.items()):
        color = COLORS[number % len(COLORS)]
        side = sorted(side, key=lambda entry: entry["size"])
        line = " ".join(f'{x(entry["size"]):.1f},{y(entry["median"]):.1f}' for entry in side)
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        for entry in side:
            at = x(entry["size"])
            out.append(f'<path d="M{at:.1f} {y(entry["low"]):.1f}V{y(entry["high"]):.1f}" '
                       f'stroke="{color}"/><circle cx="{at:.1f}" cy="{y(entry["median"]):.1f}" '
                       f'r="3" fill="{color}"/>')
        across, down = LEFT + number % 2 * 200, HEIGHT - BOTTOM + 34 + number // 2 * 16
        out.append(f'<rect x="{across}" y="{down - 8}" width="10" height="10" fill="{color}"/>'
                   f'<text x="{across + 15}" y="{down + 1}">{escape(name)}</text>')
    return "\n".join(out)


def picture(rows):
    height = math.ceil(len(rows) / COLUMNS) * HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * COLUMNS}" height="{height}" '
           'font-family="sans-serif" font-size="11">',
           "<style>.title{font-weight:bold;font-size:12px}.end{text-anchor:end}"
           ".middle{text-anchor:middle}.grid{stroke:#ddd}</style>",
           f'<rect width="{WIDTH * COLUMNS}" height="{height}" fill="#fff"/>']
    for number, (row, sides) in enumerate(rows.items()):
        out.append(f'<g transform="translate({number % COLUMNS * WIDTH},'
                   f'{number // COLUMNS * HEIGHT})">\n{panel(row, sides)}\n</g>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = panels(json.load(file)["rows"])
    if not rows:
        sys.exit("plot.py: no row was measured at more than one size")
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(picture(rows))


if __name__ == "__main__":
    main()
