#!/usr/bin/env python3
"""Writes README's tables of GPU kernels, each between its two marks, from results of the benchmarks: of large inputs from
those of kernels, of small ones from those of the sweep, where these are given.

    gpu_readme.py README.md bench/results/h200-DATE-kernels-*.log bench/results/h200-DATE-sweep-*.log
"""
import json
import sys

BEGIN, BEGIN_SMALL, END = "<!-- made by scripts/gpu_readme.py -->\n", "<!-- small, made by scripts/gpu_readme.py -->\n", "<!-- end -->\n"
SMALL = 24  # log2 of the elements from which on the plot of the sweep tells more
LENGTHS = [("8", "lengths 8"), ("1024", "lengths 1024"), ("1048576", "lengths 2^20"), ("zipf", "Zipf lengths, 10 % empty"),
           ("half_giant", "half in one segment")]
NAMES = {"cub": "CUB", "cub by key": "CUB by key", "cusparse": "cuSPARSE"}
ROWS = ([("sum", "sum"), ("scan", "exclusive scan"), ("filter", "filter, half survive"),
         ("norm2_sums", "norm2, both sums in one kernel"), ("norm2_scale", "norm2, both scaled copies in one kernel")] +
        [(f"segmented_sum_{kind}", f"segmented sum, {text}") for kind, text in LENGTHS] +
        [(f"segmented_scan_{kind}", f"segmented scan, {text}") for kind, text in LENGTHS] +
        [(f"spmv32_{kind}", f"sparse matrix-vector, {text}") for kind, text in LENGTHS] +
        [("types_scan_f64", "scan of 2^26 float64"), ("types_filter_i64", "filter of 2^26 int64"),
         ("types_segmented_sum_f64_1024", "segmented sum of 2^26 float64, lengths 1024"),
         ("types_segmented_sum_f64_zipf", "segmented sum of 2^26 float64, Zipf lengths"),
         ("types_scan_4", "scan of four arrays of 2^25"), ("types_segmented_scan_4_zipf", "segmented scan of four arrays of 2^25, Zipf lengths"),
         ("types_segmented_sum_4_1024", "segmented sum of four arrays of 2^25, lengths 1024"),
         ("chars_count", "count of one of 2^27 characters"), ("chars_filter", "filter of 2^27 characters, 38 % survive"),
         ("chars_positions", "positions of one character, as int64"),
         ("segmented_weighted_sum_zipf", "segmented sum times a number a segment, Zipf lengths"),
         ("segmented_filter_zipf", "segmented filter, Zipf lengths"),
         ("black_scholes", "Black-Scholes, 2^25 options"), ("sum_1024", "sum of 1024 floats")])


def read(logs):
    """Results by job and by who."""
    times = {}
    for log in logs:
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("{"):
                    row = json.loads(line)
                    times.setdefault(row["job"], {})[row["who"]] = row
    return times


def large(times):
    copy = times["copy"]["cudaMemcpy"]
    speed = copy["bytes"] / copy["ms"]
    out = [f"A device copy reaches {speed / 1e6:.0f} GB/s.\n", "\n", "| job | Kelpie ms | % of copy | peer ms |\n",
           "|---|---|---|---|\n"]
    for job, text in ROWS:
        rows = times[job]
        ours = rows["kelpie"]
        share = 100 * ours["bytes"] / ours["ms"] / speed
        peer = min((row["ms"], who) for who, row in rows.items() if who != "kelpie") if len(rows) > 1 else None
        peers = f"{peer[0]:.3g} ({NAMES[peer[1]]})" if peer else ""
        out.append(f"| {text} | {ours['ms']:.3g} | {f'{share:.0f}' if share >= 1 else ''} | {peers} |\n")
    return out


def best(rows, graphs):
    """Of the peers, as called or as graphs; none where no peer does the job."""
    return min((row["ms"] for who, row in rows.items() if who != "kelpie" and who.endswith(", graph") == graphs), default=None)


def whole(rows):
    """Microseconds of a job."""
    peers = [best(rows, graphs) for graphs in (False, True)]
    texts = "; ".join(f"{1000 * ms:.1f}" if ms else "not measured" for ms in peers)
    return f"{1000 * rows['kelpie']['ms']:.1f} ({texts})"


def lengths(times, job, exponent):
    """How many times as long as Kelpie the best peer takes, over all lengths of segments."""
    texts = []
    for graphs in (False, True):
        prefix = f"sweep_{job}_{exponent}_"
        ratios = sorted(best(rows, graphs) / rows["kelpie"]["ms"] for name, rows in times.items()
                        if name.startswith(prefix) and "kelpie" in rows and best(rows, graphs))
        texts.append(f"{ratios[0]:.2f} / {ratios[len(ratios) // 2]:.2f} / {ratios[-1]:.3g}")
    return f"{texts[0]} ({texts[1]})"


def small(times):
    exponents = sorted({int(name.split("_")[2]) for name in times if name.startswith("sweep_sum_")})
    out = ["| elements | sum | scan | filter | segmented sums | segmented scans |\n", "|---|---|---|---|---|---|\n"]
    for exponent in exponents:
        if exponent < SMALL:
            cells = [whole(times[f"sweep_{job}_{exponent}"]) for job in ("sum", "scan", "filter")]
            cells += [lengths(times, job, exponent) for job in ("sum", "scan")]
            out.append(f"| 2^{exponent} | " + " | ".join(cells) + " |\n")
    return out


def between(text, begin, lines):
    head, rest = text.split(begin)
    return head + begin + "".join(lines) + END + rest.split(END, 1)[1]


def main():
    readme, *logs = sys.argv[1:]
    times = read(logs)
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    text = between(text, BEGIN, large(times))
    if any(name.startswith("sweep_") for name in times):
        text = between(text, BEGIN_SMALL, small(times))
    with open(readme, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
