#!/usr/bin/env python3
"""Writes README's table of GPU kernels, between its two marks, from results of the benchmarks.

    gpu_readme.py README.md bench/results/h200-DATE-kernels-*.log
"""
import json
import sys

BEGIN, END = "<!-- made by scripts/gpu_readme.py -->\n", "<!-- end -->\n"
LENGTHS = [("8", "lengths 8"), ("1024", "lengths 1024"), ("1048576", "lengths 2^20"), ("zipf", "Zipf lengths, 10 % empty"),
           ("half_giant", "half in one segment")]
NAMES = {"cub": "CUB", "cusparse": "cuSPARSE"}
ROWS = ([("sum", "sum"), ("scan", "exclusive scan"), ("filter", "filter, half survive"),
         ("norm2_sums", "norm2, both sums in one kernel"), ("norm2_scale", "norm2, both scaled copies in one kernel")] +
        [(f"segmented_sum_{kind}", f"segmented sum, {text}") for kind, text in LENGTHS] +
        [(f"segmented_scan_{kind}", f"segmented scan, {text}") for kind, text in LENGTHS] +
        [(f"spmv32_{kind}", f"sparse matrix-vector, {text}") for kind, text in LENGTHS] +
        [("types_scan_f64", "scan of 2^26 float64"), ("types_filter_i64", "filter of 2^26 int64"),
         ("types_segmented_sum_f64_zipf", "segmented sum of 2^26 float64, Zipf lengths"),
         ("types_scan_4", "scan of four arrays of 2^25"), ("types_segmented_scan_4_zipf", "segmented scan of four arrays of 2^25, Zipf lengths"),
         ("segmented_weighted_sum_zipf", "segmented sum times a number a segment, Zipf lengths"),
         ("segmented_filter_zipf", "segmented filter, Zipf lengths"),
         ("black_scholes", "Black-Scholes, 2^25 options"), ("sum_1024", "sum of 1024 floats")])


def main():
    readme, *logs = sys.argv[1:]
    times = {}
    for log in logs:
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("{"):
                    row = json.loads(line)
                    times.setdefault(row["job"], {})[row["who"]] = row
    copy = times["copy"]["cudaMemcpy"]
    speed = copy["bytes"] / copy["ms"]
    out = [BEGIN, f"A device copy reaches {speed / 1e6:.0f} GB/s.\n", "\n", "| job | Kelpie ms | % of copy | peer ms |\n",
           "|---|---|---|---|\n"]
    for job, text in ROWS:
        rows = times[job]
        ours = rows["kelpie"]
        share = 100 * ours["bytes"] / ours["ms"] / speed
        peers = ", ".join(f"{row['ms']:.3g} ({NAMES[who]})" for who, row in rows.items() if who != "kelpie")
        out.append(f"| {text} | {ours['ms']:.3g} | {f'{share:.0f}' if share >= 1 else ''} | {peers} |\n")
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(BEGIN)
    tail = rest.split(END, 1)[1]
    with open(readme, "w", encoding="utf-8") as file:
        file.write(head + "".join(out) + END + tail)


if __name__ == "__main__":
    main()
