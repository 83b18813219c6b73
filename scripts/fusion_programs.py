"""Greedy and best schedules of the programs in bench/fusion-programs: modelled and measured time, as a table.

    fusion_programs.py KELPIE [--target cpu|cuda] [--elements N] [--runs K] [--turns T] [PROGRAM ...]

A program begins with its functions, sets `n = SIZE;` and ends with `result... = CALL;` and a line that looks at the result.
Here n becomes N. A run with a profile tells both strategies the sizes. The call is timed from inside, T times K times by
each strategy in turn, after one that compiles its kernels; the fastest counts. Modelled is what the schedule decides about:
launches, loads and stores.
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


def command(options, *arguments):
    run = subprocess.run([*options.kelpie.split(), *arguments, f"--target={options.target}"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {run.stdout[-400:]}{run.stderr[-400:]}")
    return run.stdout


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
    print(f"{'program':16}{'greedy':>10}{'ilp':>10}{'ratio':>8}{'greedy':>14}{'ilp':>10}{'ratio':>8}{'kernels':>12}")
    for path in programs:
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^n = \d+;", f"n = {options.elements};", file.read(), flags=re.M)
        call = re.search(r"^result[^=]* = (.*);$", text, flags=re.M)
        with tempfile.TemporaryDirectory() as folder:
            timed = os.path.join(folder, "timed.nesl")
            plain = os.path.join(folder, "plain.nesl")
            with open(plain, "w", encoding="utf-8") as file:
                file.write(text[:call.end()] + "\n")
            with open(timed, "w", encoding="utf-8") as file:
                form = f"result, seconds = time({call[1]});\nmicroseconds = round(seconds * 1000000.0);\n"
                file.write(text[:call.start()] + form * (options.runs + 1))
            sizes = os.path.join(folder, "sizes.json")
            command(options, "run", "--print-length=0", "--fusion=none", f"--profile={sizes}", plain)
            times = {}
            for strategy in STRATEGIES * options.turns:
                out = command(options, "run", "--print-length=0", f"--fusion={strategy}", f"--fusion-sizes={sizes}", timed)
                runs = [int(x) / 1000 for x in re.findall(r"^microseconds = (\d+) : int", out, flags=re.M)][1:]
                times[strategy] = min(runs + [times.get(strategy, math.inf)])
            report = json.loads(command(options, "fusion", "--format=json", f"--fusion-sizes={sizes}", plain))
            form = report["forms"][-1]["report"]
            model = {s: [x for r in form["regions"] for x in r["strategies"] if x["strategy"] == s] for s in STRATEGIES}
            cost = {s: sum(x["objective"] for x in model[s]) / 1000 for s in STRATEGIES}
            kernels = "/".join(str(sum(x["launches"] for x in model[s])) for s in STRATEGIES)
        print(f"{name:16}{times['greedy']:10.3f}{times['ilp']:10.3f}{times['greedy'] / times['ilp']:8.2f}"
              f"{cost['greedy']:14.3f}{cost['ilp']:10.3f}{cost['greedy'] / cost['ilp']:8.2f}{kernels:>12}", flush=True)


main()
