#!/usr/bin/env python3
"""Draws what fusion-solver measured: time against nodes, both formulations, logarithmic on both axes.

    plot.py RESULTS.csv... > curve.svg
"""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 460, 70, 50, 40, 20
NODES, SECONDS = (3, 3000), (1e-5, 100)


def position(nodes, seconds):
    def share(value, low, high):
        return math.log(min(max(value, low), high) / low) / math.log(high / low)
    x = LEFT + share(nodes, *NODES) * (WIDTH - LEFT - RIGHT)
    y = HEIGHT - BOTTOM - share(seconds, *SECONDS) * (HEIGHT - BOTTOM - TOP)
    return x, y


def dot(nodes, seconds, colour, solved, title):
    x, y = position(nodes, seconds)
    fill = colour if solved else "white"
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5">'
            f'<title>{title}</title></circle>')


def main():
    rows = []
    for name in sys.argv[1:]:
        with open(name, newline="") as file:
            rows += list(csv.DictReader(file))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for decade in range(-5, 3):
        x, y = position(NODES[0], 10.0 ** decade)
        out.append(f'<line x1="{x}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** decade:g} s</text>')
    for nodes in (5, 10, 25, 50, 100, 300, 1000, 2000):
        x, y = position(nodes, SECONDS[0])
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{y}" stroke="#eee"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 18}" text-anchor="middle">{nodes}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">nodes of the region</text>')
    for row in rows:
        nodes = int(row["nodes"])
        if row["textbook_seconds"]:
            solved = row["textbook_optimal"] == "1"
            out.append(dot(nodes, float(row["textbook_seconds"]), "#b3261e", solved,
                           f'{row["source"]}, {nodes} nodes, textbook: {row["textbook_seconds"]} s'))
    for row in rows:
        nodes, gap = int(row["nodes"]), float(row["gap"])
        out.append(dot(nodes, float(row["seconds"]), "#1b5fb4", gap <= 1e-9,
                       f'{row["source"]}, {nodes} nodes, Kelpie: {row["seconds"]} s, gap {100 * gap:.2f} %'))
        if gap > 1e-9:
            x, y = position(nodes, float(row["seconds"]))
            out.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle" font-size="10">{100 * gap:.1f} %</text>')
    legend = [("#1b5fb4", "Kelpie"), ("#b3261e", "textbook formulation")]
    for k, (colour, text) in enumerate(legend):
        out.append(f'<circle cx="{LEFT + 15 + 90 * k}" cy="20" r="4" fill="{colour}"/>')
        out.append(f'<text x="{LEFT + 25 + 90 * k}" y="24">{text}</text>')
    out.append(f'<text x="{WIDTH - RIGHT}" y="24" text-anchor="end">filled: proven optimal; hollow: stopped at the time limit, with gap</text>')
    print("\n".join(out + ["</svg>"]))


main()
