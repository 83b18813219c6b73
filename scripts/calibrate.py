"""Constants of the cost model (fusion/cost_constants.h) from two profiles of bench/calibration.nesl.

    calibrate.py PROFILE64 PROFILE32 [--write fusion/cost_constants.cpp]

Every constant comes from one or two kernels, of which the fastest launch counts. Times are microseconds.
"""

import argparse
import json
import math
import re
import sys

SIMPLE_IN_OPERATIONS = 94  # multiplications and additions of the function `operations`


class Measured:
    """The kernels of one profile: time and bytes of the fastest launch, by function."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.profile = json.load(file)
        self.kernels = {}
        for kernel in self.profile["kernels"]:
            if kernel["evaluated"] and self.profile["target"] != "interp":
                continue  # not what is to be measured
            launches = kernel["launches"]
            row = (kernel["microseconds"] / launches, (kernel["bytesRead"] + kernel["bytesWritten"]) / launches,
                   kernel["elements"] // launches, kernel["segments"] // launches)
            name = re.sub(r"_\d+$", "", kernel["kernel"])
            self.kernels[name] = min(row, self.kernels.get(name, row))
        self.launch = self.kernels["tiny_map"][0]
        self.n = self.kernels["copying_map"][2]

    def time(self, name):
        return self.kernels[name][0] - self.launch

    def extra(self, name, in_order=None):
        """Time of an element beyond what its bytes take in order."""
        in_order = self.kernels[name][1] if in_order is None else in_order
        return max(0.0, self.time(name) - in_order * self.byte) / self.kernels[name][2]

    # Memory m and arithmetic a take max(m, a) + (1 - overlap) * min(m, a).

    def both(self, memory, arithmetic):
        return max(memory, arithmetic) + (1 - self.overlap) * min(memory, arithmetic)

    def arithmetic(self, name):
        """Arithmetic on one element."""
        memory = self.kernels[name][1] * self.byte
        rest = 1 - self.overlap
        total = self.time(name)
        most = total - rest * memory
        if most < memory:
            most = (total - memory) / rest if rest > 0.05 else memory
        return max(0.0, most) / self.n

    def find_arithmetic(self):
        self.overlap, self.operation = 0.0, 0.0
        for _ in range(30):  # the constants depend on each other, weakly
            copy = self.time("copying_map") - (1 - self.overlap) * self.n * self.operation
            self.byte = copy / self.kernels["copying_map"][1]
            self.operation = self.arithmetic("operations_map") / SIMPLE_IN_OPERATIONS
            self.overlap = min((abs(self.one_division(v) - self.time("one_division_map")), v)
                               for v in (k / 20 for k in range(21)))[1]
        simple = self.operation
        self.integer_division = max(simple, self.arithmetic("int_divisions_map") / 8 - 2 * simple)
        self.division = max(simple, self.arithmetic("divisions_map") / 8 - 2 * simple)
        self.exponential = max(simple, self.arithmetic("exponentials_map") / 4 - 2 * simple)
        self.logarithm = max(simple, self.arithmetic("logarithms_map") / 4 - 2 * simple)
        self.trigonometric = max(simple, self.arithmetic("sines_map") / 4 - 2 * simple)

    def one_division(self, overlap):
        """What the kernel with one division should take, by what the one with eight takes."""
        before, self.overlap = self.overlap, overlap
        memory = self.kernels["divisions_map"][1] * self.byte
        time = self.both(memory, self.n * self.arithmetic("divisions_map") / 8)
        self.overlap = before
        return time

    def loads(self):
        """Time of one load by bytes of the table it goes to."""
        sizes = {"cache": 8192, "1_mb": 1 << 20, "4_mb": 1 << 22, "16_mb": 1 << 24, "64_mb": 1 << 26, "256_mb": 1 << 28}
        checks = 4 * self.operation * (1 - self.overlap)  # of the position
        result = {}
        for name, size in sizes.items():
            kernel = f"from_{name}_map"
            read = self.kernels[kernel][1]
            # Of 24 bytes an element 8 are the gathered ones.
            result[size] = max(self.operation, self.extra(kernel, read * 2 / 3) - checks)
        far = self.extra("from_far_map", self.kernels["from_far_map"][1] * 2 / 3) - checks
        return result, far


def through(wide, narrow):
    """(element, byte) with element + 8 byte = wide and element + 4 byte = narrow, neither negative."""
    byte = (wide - narrow) / 4
    element = wide - 8 * byte
    if element < 0:
        return 0.0, wide / 8
    return (wide, 0.0) if byte < 0 else (element, byte)


def lengths(m, short, long):
    """(element, segment) from kernels over short and long segments, neither negative."""
    (ts, bs, ns, ss), (tl, bl, nl, sl) = m.kernels[short], m.kernels[long]
    ts, tl = ts - m.launch - bs * m.byte, tl - m.launch - bl * m.byte
    determinant = ns * sl - nl * ss
    element, segment = (ts * sl - tl * ss) / determinant, (ns * tl - nl * ts) / determinant
    if element < 0:
        return 0.0, max(0.0, ts / ss)
    return (max(ts / ns, tl / nl, 0.0), 0.0) if segment < 0 else (element, segment)


def constants(wide, narrow, far_bytes):
    for m in (wide, narrow):
        m.find_arithmetic()
    loads, far = wide.loads()
    cached = max(min(loads.values()), wide.operation)

    def missing(cache, size):
        return max(0.0, 1 - cache / size)

    def error(cache):
        random = cached + (far - cached) / max(1e-9, missing(cache, far_bytes))
        return sum(math.log((cached + missing(cache, size) * (random - cached)) / t) ** 2 for size, t in loads.items())

    cache = min((error(1 << k), 1 << k) for k in range(12, int(math.log2(far_bytes))))[1]
    permute = wide.extra("reordering_permute")
    random_store = (wide.extra("permuting_permute") - permute) / max(1e-9, missing(cache, 8 * wide.n))
    scan = through(wide.extra("scanning_scan"), narrow.extra("scanning_scan"))
    kept = through(wide.extra("filtering_filter"), narrow.extra("filtering_filter"))
    segmented = lengths(wide, "short_scales_map", "long_scales_map")
    folded = lengths(wide, "short_sums_reduce", "long_sums_reduce")
    kinds = ("division", "exponential", "logarithm", "trigonometric")
    ratio = math.exp(sum(math.log(getattr(narrow, k) / getattr(wide, k)) for k in kinds) / len(kinds))
    return {
        "launch": wide.launch,
        "byte": wide.byte,
        "cachedLoad": cached,
        "randomLoad": max(cached, cached + (far - cached) / missing(cache, far_bytes)),
        "cacheBytes": cache,
        "operation": wide.operation,
        "integerDivision": wide.integer_division,
        "division": wide.division,
        "exponential": wide.exponential,
        "logarithm": wide.logarithm,
        "trigonometric": wide.trigonometric,
        "float32": min(1.0, ratio),
        "overlap": wide.overlap,
        "scanElement": scan[0],
        "scanByte": scan[1],
        "filterElement": kept[0],
        "filterByte": kept[1],
        "segmentedElement": segmented[0],
        "segment": segmented[1],
        "foldedElement": folded[0],
        "foldedSegment": folded[1],
        "permuteElement": permute,
        "randomStore": max(0.0, random_store),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wide")
    parser.add_argument("narrow")
    parser.add_argument("--write")
    options = parser.parse_args()
    wide, narrow = Measured(options.wide), Measured(options.narrow)
    target = wide.profile["target"]
    far = next(k for k in wide.profile["kernels"] if k["kernel"].startswith("calibrate_map") and
               k["elements"] == max(x["elements"] for x in wide.profile["kernels"]))["elements"] * 8
    found = constants(wide, narrow, far)
    text = "".join(f"    .{name} = {value:.3g},\n" for name, value in found.items())
    print(f"{target}, fastest of {len(wide.profile['kernels']) // len(wide.kernels)} runs, "
          f"copy {wide.profile['copyBytesPerSecond'] / 1e9:.1f} GB/s")
    print(text, end="")
    if options.write:
        with open(options.write, encoding="utf-8") as file:
            source = file.read()
        block = re.compile(rf'(\.name = "{target}",\n)(.*?)(    \.collectiveBudget)', re.S)
        if not block.search(source):
            sys.exit(f"calibrate.py: {options.write} has no constants of {target}")
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(block.sub(lambda m: m[1] + text + m[3], source))


main()
