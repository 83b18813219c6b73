#!/usr/bin/env python3
"""Writes a sparse matrix with power-law row lengths in Matrix Market form.

    generate_matrix.py [--rows N] [--mean M] [--seed S] FILE

Row lengths follow a Pareto distribution (many rows of one or two entries, a few of thousands); the columns of a row are
random and distinct. The same arguments give the same file.
"""

import argparse
import random


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--mean", type=float, default=8.0, help="mean number of entries in a row (roughly)")
    options.add_argument("--seed", type=int, default=1)
    arg = options.parse_args()
    draw = random.Random(arg.seed)
    n = arg.rows
    shape = 1.8
    scale = arg.mean * (shape - 1.0) / shape
    lengths = [min(n, int(scale * draw.paretovariate(shape))) for _ in range(n)]
    with open(arg.file, "w", encoding="ascii") as out:
        out.write("%%MatrixMarket matrix coordinate real general\n")
        out.write(f"{n} {n} {sum(lengths)}\n")
        for row, length in enumerate(lengths, 1):
            columns = set()
            while len(columns) < length:
                columns.add(draw.randrange(n) + 1)
            lines = [f"{row} {column} {draw.uniform(-1.0, 1.0):.6f}\n" for column in sorted(columns)]
            out.write("".join(lines))


if __name__ == "__main__":
    main()
