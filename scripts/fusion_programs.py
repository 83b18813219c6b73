"""Greedy and best schedules of the programs in bench/fusion-programs: modelled and measured time, as a table.

    fusion_programs.py KELPIE [--target cpu|cuda] [--elements N] [--runs K] [--turns T] [PROGRAM ...]

A program begins with its functions, sets `n = SIZE;` and ends with `result... = CALL;` and a line that looks at the result.
Here n becomes N. A run with a profile tells both strategies the sizes. `kelpie bench` measures the call, T times K times by
each strategy in turn; the fastest counts. Modelled is what the schedule decides about: launches, loads and stores.
A program that fails gets a line that says so; then the exit status is 1.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(__file__), "..", "bench", "fusion-programs")
STRATEGIES = ("greedy", "ilp")


SECONDS = 60  # for one command


class Failure(Exception):
    pass


def command(options, *arguments):
    try:
        run = subprocess.run([*options.kelpie.split(), *arguments, f"--target={options.target}"], capture_output=True, text=True,
                             timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"{arguments[0]} takes more than {SECONDS} s") from None
    if run.returncode != 0:
        raise Failure(f"{arguments[0]}: {run.stdout[-400:]}{run.stderr[-400:]}")
    return run.stdout


def row(options, path):
    """What the table says of a program."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^n = \d+;", f"n = {options.elements};", file.read(), flags=re.M)
    call = re.search(r"^result[^=]* = (.*);$", text, flags=re.M)
    with tempfile.TemporaryDirectory() as folder:
        names = {name: os.path.join(folder, name) for name in ("before.nesl", "whole.nesl", "sizes.json")}
        with open(names["before.nesl"], "w", encoding="utf-8") as file:
            file.write(text[:call.start()])
        with open(names["whole.nesl"], "w", encoding="utf-8") as file:
            file.write(text[:call.end()] + "\n")
        sizes = f"--fusion-sizes={names['sizes.json']}"
        command(options, "run", "--print-length=0", "--fusion=none", f"--profile={names['sizes.json']}", names["whole.nesl"])
        times = dict.fromkeys(STRATEGIES, math.inf)
        for strategy in STRATEGIES * options.turns:
            out = command(options, "bench", names["before.nesl"], f"--entry={call[1]}", f"--fusion={strategy}", sizes,
                          f"--runs={options.runs}", "--json=-")
            times[strategy] = min(times[strategy], *json.loads(out)["results"][0]["microseconds"])
        report = json.loads(command(options, "fusion", "--format=json", sizes, names["whole.nesl"]))
    form = report["forms"][-1]["report"]
    model = {s: [x for r in form["regions"] for x in r["strategies"] if x["strategy"] == s] for s in STRATEGIES}
    cost = {s: sum(x["objective"] for x in model[s]) / 1000 for s in STRATEGIES}
    kernels = "/".join(str(sum(x["launches"] for x in model[s])) for s in STRATEGIES)
    return (f"{times['greedy'] / 1000:10.3f}{times['ilp'] / 1000:10.3f}{times['greedy'] / times['ilp']:8.2f}"
            f"{cost['greedy']:14.3f}{cost['ilp']:10.3f}{cost['greedy'] / cost['ilp']:8.2f}{kernels:>12}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kelpie")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--elements", type=int, default=4000000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_intermixed_args()
    programs = options.programs or sorted(os.path.join(FOLDER, f) for f in os.listdir(FOLDER))
    print(f"{options.target}, n = {options.elements}, fastest of {options.turns * options.runs}; milliseconds")
    print(f"{'':16}{'measured':>20}{'':8}{'modelled':>24}")
    print(f"{'program':16}{'greedy':>10}{'ilp':>10}{'ratio':>8}{'greedy':>14}{'ilp':>10}{'ratio':>8}{'kernels':>12}", flush=True)
    failed = False
    for path in programs:
        name = os.path.splitext(os.path.basename(path))[0]
        try:
            print(f"{name:16}{row(options, path)}", flush=True)
        except Failure as failure:
            failed = True
            print(f"{name:16}FAILED: {str(failure).strip()}", flush=True)
    sys.exit(1 if failed else 0)


main()
