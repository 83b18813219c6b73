"""Predicted and measured times of kernels, from reports of `kelpie fusion --run --format=json`.

    prediction_table.py [--least MICROSECONDS] [--within SHARE] REPORT ...

A kernel's row: program, kernel, milliseconds predicted and measured of a launch, their ratio, and the share of the predicted
bytes in those measured. Kernels that take less are left out. Ends with how many are within the share.
"""

import argparse
import json
import os


def kernels(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for form in report["forms"]:
        for region in form["report"]["regions"]:
            for cluster in region["clusters"]:
                if "measured" in cluster:
                    yield region["function"], cluster


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reports", nargs="+")
    parser.add_argument("--least", type=float, default=1000)
    parser.add_argument("--within", type=float, default=0.25)
    options = parser.parse_args()
    rows = []
    for path in options.reports:
        program = os.path.basename(path).split(".")[0]
        for _, cluster in kernels(path):
            measured = cluster["measured"]
            if measured["microseconds"] < options.least:
                continue
            counted = measured["bytesRead"] + measured["bytesWritten"]
            rows.append((program, cluster["kernel"], cluster["microseconds"], measured["microseconds"],
                         (cluster["bytesRead"] + cluster["bytesWritten"]) / counted if counted else 1))
    print(f"{'program':16} {'kernel':44} {'predicted ms':>12} {'measured ms':>12} {'ratio':>7} {'bytes':>7}")
    inside = 0
    for program, kernel, predicted, measured, share in rows:
        good = abs(predicted / measured - 1) <= options.within
        inside += good
        print(f"{program:16} {kernel[:44]:44} {predicted / 1000:12.3f} {measured / 1000:12.3f} {predicted / measured:7.2f} "
              f"{share:7.2f}{'' if good else '  outside'}")
    print(f"{inside} of {len(rows)} kernels of {options.least / 1000:g} ms or more are predicted within "
          f"{100 * options.within:g} %")


main()
