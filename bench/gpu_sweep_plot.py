#!/usr/bin/env python3
"""Draws the sweep of segment lengths: share of copy bandwidth over mean length, Kelpie and CUB, by size and job.

    gpu_sweep_plot.py KELPIE.log PEERS.log > sweep.svg
"""
import json
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 220, 50, 64, 24
MOST = 110  # percent
SMALLEST = 24  # log2 of elements; README has a table of smaller sizes, where no job is bound by memory
SERIES = [("kelpie", "", "Kelpie", "#1b5fb4", ""), ("kelpie", "_empties", "Kelpie, as many segments empty", "#1b5fb4", "5 4"),
          ("cub", "", "CUB, segmented", "#b3261e", ""), ("cub", "_empties", "CUB, as many empty", "#b3261e", "5 4"),
          ("cub by key", "", "CUB, by key", "#7a6a00", "")]


def read(names):
    """Share of copy bandwidth in percent by (who, job, log2 of elements, log2 of length, empties)."""
    rows = []
    for name in names:
        with open(name, encoding="utf-8") as file:
            rows += [json.loads(line) for line in file if line.startswith("{")]
    copies, shares = {}, {}
    for row in rows:
        if row["job"].startswith("sweep_copy_"):
            copies[int(row["job"].split("_")[2])] = row["bytes"] / row["ms"]
    for row in rows:
        parts = row["job"].split("_")
        if parts[1] == "copy" or len(parts) < 4 or int(parts[2]) < SMALLEST:
            continue
        elements, length = int(parts[2]), int(parts[3])
        empties = "_empties" if len(parts) > 4 else ""
        shares[row["who"], parts[1], elements, length, empties] = 100 * row["bytes"] / row["ms"] / copies[elements]
    return shares


def panel(shares, job, elements, left, top):
    def place(length, share):
        return left + length / elements * WIDTH, top + HEIGHT - min(share, MOST) / MOST * HEIGHT
    out = []
    for percent in range(0, 101, 20):
        y = place(0, percent)[1]
        out.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent}</text>')
    for length in range(0, elements + 1, 4):
        x = place(length, 0)[0]
        out.append(f'<text x="{x:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{length}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{top - 6}" text-anchor="middle" font-weight="bold">segmented {job}, '
               f'2^{elements} float32</text>')
    for who, empties, _, colour, dashes in SERIES:
        points = sorted((length, share) for (w, j, e, length, m), share in shares.items()
                        if (w, j, e, m) == (who, job, elements, empties))
        line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in points)
        if line:
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
    return out


def main():
    shares = read(sys.argv[1:])
    sizes = sorted({key[2] for key in shares})
    jobs = ["sum", "scan"]
    width = LEFT + len(sizes) * (WIDTH + LEFT + GAP)
    height = TOP + len(jobs) * (HEIGHT + TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    at = LEFT
    for _, _, text, colour, dashes in SERIES:
        out.append(f'<line x1="{at}" x2="{at + 28}" y1="20" y2="20" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
        out.append(f'<text x="{at + 34}" y="24">{text}</text>')
        at += 60 + 6 * len(text)
    for row, job in enumerate(jobs):
        for column, elements in enumerate(sizes):
            out += panel(shares, job, elements, LEFT + column * (WIDTH + LEFT + GAP), TOP + row * (HEIGHT + TOP))
    out.append(f'<text x="{width / 2}" y="{height - 14}" text-anchor="middle">log2 of the mean length of segments; '
               'upward: % of copy bandwidth</text>')
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    main()
