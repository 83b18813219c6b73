#!/usr/bin/env python3
"""Measures whole programs and their peers, and checks that both find the same answers.

    bench/programs/run.py --kelpie build/driver/kelpie --peers build/bench --target cuda --results results.json

Without --peers only Kelpie is measured; peers in PyTorch are left out where there is none. --small makes data for a quick look; --only names programs. The table goes to
standard output, with --results everything into a file. Exit status 1: something failed, or answers differ.
"""
import argparse
import importlib.util
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

# program, function, data, digest, peer, the peer's job, sizes (large, small). A peer is a program NAME_peer, or a script, which
# computes in float32 as Kelpie then does; None: there is none.
JOBS = [
    ("quicksort", "quicksort", "input", "digest", "sort", "sort", (["10000000"], ["100000"])),
    ("quicksort", "quicksort_rows", "rows", "digest_rows", "sort", "segmented sort", (["10000", "1000"], ["100", "100"])),
    ("batcher_sort", "batcher_sort", "input", "digest", "sort", "sort", (["1048576"], ["4096"])),
    *(("quickhull", "quickhull", kind, "digest", "quickhull", "quickhull", (["10000000"], ["100000"]))
      for kind in ("disc", "circle", "kuzmin")),
    ("breadth_first_search", "breadth_first_search", "random_graph", "digest", "breadth_first_search",
     "breadth_first_search", (["1000000", "5000000"], ["10000", "50000"])),
    ("breadth_first_search", "breadth_first_search", "rmat_graph", "digest", "breadth_first_search",
     "breadth_first_search", (["20", "5000000"], ["12", "50000"])),
    ("breadth_first_search", "breadth_first_search", "grid_graph", "digest", "breadth_first_search",
     "breadth_first_search", (["1600"], ["100"])),
    ("components", "components", "random", "digest", "components", "components",
     (["1000000", "10000000"], ["10000", "50000"])),
    ("components", "components", "rmat", "digest", "components", "components", (["20", "10000000"], ["12", "50000"])),
    ("components", "components", "grid", "digest", "components", "components", (["2237"], ["100"])),
    ("triangles", "triangles", "random", "digest", "triangles", "triangles",
     (["1000000", "10000000"], ["1000", "20000"])),
    ("triangles", "triangles", "rmat", "digest", "triangles", "triangles", (["18", "2000000"], ["10", "20000"])),
    *(("kmeans", function, "input", "digest", "kmeans", "kmeans", (["1000000", "32"], ["10000", "8"]))
      for function in ("kmeans", "kmeans_by_key")),
    ("nbody", "nbody", "input", "digest", "nbody", "nbody", (["16384"], ["500"])),
    *(("barnes_hut", "barnes_hut", kind, "digest", "barnes_hut", "barnes_hut", (["1000000"], ["1000"]))
      for kind in ("uniform", "plummer")),
    *(("delaunay", "delaunay", kind, "digest", "delaunay", "delaunay", (["1000000"], ["10000"]))
      for kind in ("square", "kuzmin")),
    ("mandelbrot", "mandelbrot", "input", "digest", "mandelbrot", "mandelbrot", (["2048"], ["200"])),
    *(("jacobi", "jacobi", "input", "digest", "jacobi", job, (["512"], ["50"]))
      for job in ("jacobi", "jacobi as a graph")),
    ("conjugate_gradients", "conjugate_gradients", "input", "digest", None, None, (["512"], ["50"])),
    ("string_search", "string_search", "input", "digest", "string_search", "string_search",
     (["1000000000"], ["1000000"])),
    ("histogram", "by_sort", "input", "digest", "histogram", "by_sort", (["10000000"], ["100000"])),
    ("histogram", "by_key", "input", "digest", "histogram", "by_key", (["10000000"], ["100000"])),
    *(("matrices", function, "input", digest, "matrices", function, (sizes, ["300", "200"]))
      for function, digest in (("transposed", "digest_rows"), ("column_sums", "digest"))
      for sizes in (["8000", "8000"], ["1000000", "64"])),
    ("matrices", "product", "both", "digest_floats", "matrices", "product", (["1024"], ["100"])),
    ("vectors", "dot", "vectors", "digest_dot", "vectors_torch.py", "dot", (["134217728"], ["1000000"])),
    ("vectors", "norm2", "vector", "digest_norm2", "vectors_torch.py", "norm2", (["134217728"], ["1000000"])),
    ("vectors", "black_scholes", "options", "digest_prices", "vectors_torch.py", "black_scholes",
     (["33554432"], ["1000000"])),
]
# What a peer calls data that NESL has another name for.
PEER_DATA = {"random_graph": "random", "rmat_graph": "rmat", "grid_graph": "grid"}
FOLDER = pathlib.Path(__file__).resolve().parent


def output_of(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as expired:
        raise RuntimeError(f"{' '.join(map(str, command))}: no end after {seconds} s") from expired
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-1000:]}")
    return done.stdout


def kelpie(options, program, function, data, digest, widths):
    """What `kelpie bench` measured, and the digest of the result."""
    source = FOLDER / f"{program}.nesl"
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        output_of([*options.kelpie, "bench", f"--target={options.target}", *widths, "--entry", function, "--data", data,
                   "--json", results, source], options.seconds)
        file = json.loads(results.read_text())
        check = pathlib.Path(folder) / "check.nesl"
        check.write_text(f'load "{source.with_suffix("")}";\n{digest}({function}({data}));\n')
        value = output_of([*options.kelpie, "run", f"--target={options.target}", *widths, check], options.seconds)
    # "it = 3 : int" or "it = (3, 4.0) : int, float": the last number
    number = float(value.split(" = ")[1].split(" : ")[0].strip("()").split(",")[-1])
    return file["results"][0], number


def is_script(peer_name):
    return peer_name is not None and peer_name.endswith(".py")


def peer(options, name, job, data, sizes):
    """The fastest of what the peer tells of the job."""
    command = [sys.executable, FOLDER / name] if is_script(name) else [*options.launcher, pathlib.Path(options.peers) / f"{name}_peer"]
    lines = output_of([*command, PEER_DATA.get(data, data), *sizes], options.seconds)
    results = [result for result in map(json.loads, lines.splitlines()) if result["job"] == job]
    if results:
        return min(results, key=lambda result: result["ms"])
    raise RuntimeError(f"the peer {name} does not tell of {job}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kelpie", default="build/driver/kelpie", type=shlex.split, help="the command kelpie")
    parser.add_argument("--peers", help="folder of the peers; none: Kelpie alone")
    parser.add_argument("--launcher", default="", type=shlex.split, help="command that runs the peers")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", nargs="*", help="programs")
    parser.add_argument("--seconds", type=int, default=60, help="that a command may take")
    parser.add_argument("--results", help="file to write")
    options = parser.parse_args()

    torch = importlib.util.find_spec("torch") is not None
    good = True
    rows = []
    print(f"{'function':22}{'data':32}{'Kelpie ms':>11}{'peer ms':>11}{'ratio':>8}{'launches':>10}{'waits':>7}  answers",
          flush=True)
    for program, function, data, digest, peer_name, job, sizes in JOBS:
        if options.only and program not in options.only:
            continue
        numbers = sizes[1] if options.small else sizes[0]
        call = f"{data}({', '.join(numbers)})"
        row = {"program": program, "function": function, "data": call}
        rows.append(row)
        try:
            widths = ["--float=32"] if is_script(peer_name) else []
            measured, row["digest"] = kelpie(options, program, function, call, digest, widths)
            row["kelpie"] = measured
            line = f"{function:22}{call:32}{measured['median'] / 1e3:>11.3f}"
            counts = f"{measured['launches']:>10}{measured['synchronisations']:>7}"
            if options.peers and peer_name and (torch or not is_script(peer_name)):
                other = row["peer"] = peer(options, peer_name, job, data, numbers)
                row["agree"] = abs(other["digest"] - row["digest"]) <= (1e-4 if widths else 1e-8) * abs(other["digest"])
                good = good and row["agree"]
                line += f"{other['ms']:>11.3f}{measured['median'] / 1e3 / other['ms']:>8.2f}{counts}"
                line += "  agree" if row["agree"] else f"  DIFFER: {row['digest']!r}, peer {other['digest']!r}"
            else:
                line += " " * 19 + counts
            print(line, flush=True)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            good = False
            row["error"] = str(error)
            print(f"{function:22}{call:32} FAILED: {error}", flush=True)
    if options.results:
        pathlib.Path(options.results).write_text(json.dumps({"command": sys.argv, "rows": rows}, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
