"""A table of benchmark times from lines of JSON: job, Kelpie, its share of copy speed, the best peer."""

import json
import sys


def main(paths):
    times = {}
    wrong = {}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.startswith("{"):
                    continue
                row = json.loads(line)
                times.setdefault(row["job"], {})[row["who"]] = row
                if row.get("wrong"):
                    wrong[row["job"]] = row["wrong"]
    copy = times.get("copy", {}).get("cudaMemcpy")
    if copy:
        speed = copy["bytes"] / copy["ms"] / 1e6
        print(f"device copy: {speed:.0f} GB/s, read and written")
    else:
        speed = 4147.0
        print("device copy was not measured; 4147 GB/s assumed")
    print(f"{'job':28} {'kelpie ms':>10} {'% of copy':>9}   peer ms")
    for job, rows in times.items():
        ours = rows.get("kelpie")
        peers = [r for who, r in rows.items() if who != "kelpie"]
        left = f"{ours['ms']:10.4f}" if ours else f"{'':10}"
        share = f"{100 * ours['bytes'] / ours['ms'] / 1e6 / speed:9.1f}" if ours and ours["bytes"] else f"{'':9}"
        right = ", ".join(f"{r['ms']:.4f} ({r['who']})" for r in peers)
        print(f"{job:28} {left} {share}   {right}")
    for job, why in wrong.items():
        print(f"WRONG RESULT of {job}: {why}")


main(sys.argv[1:])
