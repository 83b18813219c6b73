"""Constants of the cost model (fusion/cost_constants.h) from profiles of bench/calibration.nesl: without fusion, of 64 and
of 32 bits, and with it.

    calibrate.py PROFILE64 PROFILE32 FUSED [--write fusion/cost_constants.cpp]

Every constant comes from one or two kernels, of which the fastest launch counts. Times are microseconds.
"""

import argparse
import json
import math
import re
import sys

SIMPLE_IN_OPERATIONS = 94  # multiplications and additions of the function `operations`
INTEGERS = (64, 96, 24)  # of `integer_operations`, products of `integer_products`, conversions of `conversions`


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
            if not launches:
                continue
            row = (kernel["microseconds"] / launches, (kernel["bytesRead"] + kernel["bytesWritten"]) / launches,
                   kernel["elements"] // launches, kernel["segments"] // launches)
            name = re.sub(r"_\d+", "", kernel["kernel"])  # fused ones: what they begin with
            self.kernels[name] = min(row, self.kernels.get(name, row))
        if "tiny_map" in self.kernels:  # without fusion
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
            self.stored = max(self.byte, self.time("filling_map") / self.kernels["filling_map"][1])
            self.operation = self.arithmetic("operations_map") / SIMPLE_IN_OPERATIONS
            self.overlap = min((abs(self.one_division(v) - self.time("one_division_map")), v)
                               for v in (k / 20 for k in range(21)))[1]
        simple = self.operation
        self.integer = self.arithmetic("integer_operations_map") / INTEGERS[0]
        self.product = max(self.integer, self.arithmetic("integer_products_map") / INTEGERS[1] - self.integer)
        self.conversion = max(self.integer, self.arithmetic("conversions_map") / INTEGERS[2] - self.integer - simple)
        self.constant_division = max(simple, self.arithmetic("constant_divisions_map") / 8 - self.integer)
        rounds = 16  # of loops; without a division each has a sum in its place
        per_round = lambda name: (self.arithmetic(name) - self.arithmetic("looping_map")) / rounds
        self.integer_division = max(simple, per_round("int_divisions_map") + self.integer)
        self.division = max(simple, self.arithmetic("divisions_map") / 8 - 2 * simple)
        self.exponential = max(simple, self.arithmetic("exponentials_map") / 16 - simple)
        self.logarithm = max(simple, self.arithmetic("logarithms_map") / 4 - 2 * simple)
        self.long_division = max(self.integer_division, per_round("long_divisions_map") - self.product)
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
        sizes = {"cache": 8192, "kb128": 1 << 17, "mb1": 1 << 20, "mb4": 1 << 22, "mb16": 1 << 24, "mb64": 1 << 26, "mb256": 1 << 28}
        checks = 4 * self.operation * (1 - self.overlap)  # of the position
        in_order = 2 / 3  # of 24 bytes an element, 8 are the gathered ones
        result = {}
        for name, size in sizes.items():
            kernel = f"from_{name}_map"
            result[size] = max(self.operation, self.extra(kernel, self.kernels[kernel][1] * in_order) - checks)
        many = 16  # from a small table: one alone hides
        result[8192] = max(self.operation, self.extra("from_cache_often_map", self.kernels["copying_map"][1]) / many)
        result[1 << 17] = max(result[1 << 17], result[8192])
        self.beside = max(self.operation, self.extra("beside_map", self.kernels["copying_map"][1]) / many)
        if self.profile["target"] == "cuda":  # what is in order passes by the shared cache at the same time
            for name, size in sizes.items():
                time, moved, n = self.time(f"from_{name}_map"), self.kernels[f"from_{name}_map"][1], self.n
                if (1 << 20) <= size <= (1 << 24):
                    result[size] = time / (n + in_order * moved / 32)
        far = self.extra("from_far_map", self.kernels["from_far_map"][1] * in_order) - checks
        return result, far


def lengths(m, short, long):
    """(element, segment) from kernels over short and long segments, neither negative."""
    (ts, bs, ns, ss), (tl, bl, nl, sl) = m.kernels[short], m.kernels[long]
    ts, tl = ts - m.launch - bs * m.byte, tl - m.launch - bl * m.byte
    determinant = ns * sl - nl * ss
    element, segment = (ts * sl - tl * ss) / determinant, (ns * tl - nl * ts) / determinant
    if element < 0:
        return 0.0, max(0.0, ts / ss)
    return (max(ts / ns, tl / nl, 0.0), 0.0) if segment < 0 else (element, segment)


def caches(loads, far, far_bytes):
    """(cachedLoad, sharedLoad, randomLoad, ownBytes, cacheBytes): the model's two caches that fit the loads best."""
    loads = {**loads, far_bytes: far}
    cached = loads[min(loads)]

    def time(size, shared, random, own, cache):
        inner, any_cache = min(1, own / size), min(1, cache / size)
        return inner * cached + (any_cache - inner) * shared + (1 - any_cache) * random

    def error(model):
        return sum(math.log(time(size, *model) / t) ** 2 for size, t in loads.items())

    powers = [1 << k for k in range(13, 29)]
    best = min((error((shared, random, own, cache)), (shared, random, own, cache))
               for own in powers for cache in powers if own <= cache
               for shared in sorted(set(loads.values()))
               for random in (far * k / 20 for k in range(20, 30)) if cached <= shared <= random)[1]
    return (cached, *best)


DIVISIONS = (4, 15)  # divisions and other operations of scanning_divisions and filtering_divisions


def collectives(wide, narrow, fused):
    """(collectiveOverlap, passes, (scanElement, scanByte), (filterElement, filterByte)) that fit best: kernels with a scan or
    a filter of 64 and of 32 bits, and after divisions."""
    operations = DIVISIONS[0] * wide.division + DIVISIONS[1] * wide.operation

    def case(measured, name, width, read, written, work):
        time, _, n, _ = measured.kernels[name]
        return (time - wide.launch) / n, width, read * wide.byte, written * wide.byte, work

    scans = [case(wide, "scanning_scan", 8, 8, 8, 0), case(narrow, "scanning_scan", 4, 4, 4, 0),
             case(fused, "scanning_divisions_map_scan", 8, 8, 8, operations)]
    filters = [case(wide, "filtering_filter", 8, 8, 4, 0), case(narrow, "filtering_filter", 4, 4, 2, 0),
               case(fused, "filtering_divisions_filter", 8, 8, 8, operations)]

    def error(cases, overlap, passes, element, byte):
        total = 0
        for time, width, read, written, work in cases:
            moving, working = passes * read + written, passes * work + element + width * byte
            total += math.log((max(moving, working) + (1 - overlap) * min(moving, working)) / time) ** 2
        return total

    def best(cases, overlap, passes):
        grid = [0] + [scans[0][0] * 1.2 ** -k for k in range(20)]
        return min((error(cases, overlap, passes, e, b / 8), (e, b / 8)) for e in grid for b in grid)

    found = []
    for overlap in (k / 20 for k in range(21)):
        for passes in (1, 2):
            scan, kept = best(scans, overlap, passes), best(filters, overlap, passes)
            found.append((scan[0] + kept[0], overlap, passes, scan[1], kept[1]))
    return min(found)[1:]


def further(alone, fused, first, others, read, written, stored):
    """What each scan or filter after the first of a kernel adds to an element, on average over kernels. `others`: what the names
    of these begin with; `read` and `stored`: bytes of an element that they load and store; `written`: what the first alone
    stores."""
    n = alone.n
    single = alone.time(first) - n * alone.byte * (8 + written)
    found = []
    for name, bytes_stored in zip(others, stored):
        row = next(fused.kernels[k] for k in fused.kernels if k.startswith(name) and "once" not in k)
        more = row[0] - alone.launch - n * alone.byte * (read + bytes_stored) - single
        found.append(more / n / (len(found) + 1))
    return max(0.0, sum(found) / len(found))


def segmented_overlap(m, segmented):
    """Of memory and work in a kernel whose elements need to know their segment."""
    time, read, n, segments = m.kernels["long_divisions_of_map"]
    memory = read * m.byte
    work = n * (DIVISIONS[0] * m.division + DIVISIONS[1] * m.operation)
    both = time - m.launch - n * segmented[0] - segments * segmented[1]
    return min(m.overlap, max(0.0, 1 - (both - max(memory, work)) / min(memory, work)))


def constants(wide, narrow, fused, far_bytes):
    for m in (wide, narrow):
        m.find_arithmetic()
    loads, far = wide.loads()
    cached, shared, random, own, cache = caches(loads, far, far_bytes)
    permute = wide.extra("reordering_permute")
    shared_store = max(permute, wide.extra("placing_near_permute"))
    random_store = max(permute, wide.extra("permuting_permute"))
    overlap, passes, scan, kept = collectives(wide, narrow, fused)
    segmented = lengths(wide, "short_scales_map", "long_scales_map")
    kept_rows = wide.kernels["long_kept_filter"]
    moving, working = kept_rows[1] * wide.byte, kept_rows[2] * (kept[0] + 8 * kept[1])
    hidden = min(overlap, segmented_overlap(wide, segmented)) * min(moving, working)
    kept_element = max(segmented[0], (kept_rows[0] - wide.launch - moving - working + hidden - kept_rows[3] * segmented[1])
                       / kept_rows[2])
    folded = lengths(wide, "short_sums_reduce", "long_sums_reduce")
    running = lengths(wide, "short_running_scan", "long_running_scan")
    flat = wide.extra("scanning_scan")
    headed = (max(0.0, running[0] - flat), running[1])
    numbered = fused.kernels["numbered_lists_map_reduce"]
    numbered_element = max(0.0, (numbered[0] - wide.launch - wide.byte * numbered[1]) / numbered[2])
    rows = fused.kernels["numbered_sums_map_map_reduce"]
    row_element = max(0.0, (rows[0] - wide.launch) / rows[2] - 3 * wide.integer)  # one comparison, conversion, sum
    guarded = max(0.0, wide.extra("picking_filter") - wide.extra("filtering_filter"))
    kinds = ("division", "exponential", "logarithm", "trigonometric")
    ratio = math.exp(sum(math.log(getattr(narrow, k) / getattr(wide, k)) for k in kinds) / len(kinds))
    bordering = wide.kernels["bordering_filter"]  # two checks; it reads 8 bytes of an element in order
    checked = (bordering[0] - wide.launch - (8 * wide.n + (bordering[1] - 16 * wide.n)) * wide.byte) / wide.n / 2
    return {
        "launch": wide.launch,
        "byte": wide.byte,
        "storedByte": wide.stored,
        "besideLoad": wide.beside,
        "cachedLoad": cached,
        "sharedLoad": shared,
        "randomLoad": random,
        "ownBytes": own,
        "cacheBytes": cache,
        "guardedLoad": guarded,
        "checkedFilter": max(0.0, checked - wide.extra("filtering_filter") / 2),
        "operation": wide.operation,
        "integerOperation": wide.integer,
        "integerProduct": wide.product,
        "conversion": wide.conversion,
        "narrow": min(1.0, math.sqrt(narrow.operation / wide.operation * narrow.integer / wide.integer)),
        "constantDivision": wide.constant_division,
        "integerDivision": wide.integer_division,
        "longDivision": wide.long_division,
        "division": wide.division,
        "exponential": wide.exponential,
        "logarithm": wide.logarithm,
        "trigonometric": wide.trigonometric,
        "float32": min(1.0, ratio),
        "overlap": wide.overlap,
        "collectiveOverlap": overlap,
        "scanOverlap": overlap,
        "segmentedOverlap": segmented_overlap(wide, segmented),
        "passes": passes,
        "scanElement": scan[0],
        "scanByte": scan[1],
        "filterElement": kept[0],
        "filterByte": kept[1],
        "furtherScan": further(wide, fused, "scanning_scan", ("two_scans", "three_scans"), 16, 8, (16, 24)),
        "furtherFilter": further(wide, fused, "filtering_filter", ("two_filters",), 8, 4, (8,)),
        "segmentedElement": segmented[0],
        "segment": segmented[1],
        "keptElement": kept_element,
        "numberedElement": numbered_element,
        "foldedElement": folded[0],
        "foldedSegment": folded[1],
        "headedElement": headed[0],
        "headedSegment": headed[1],
        "rowElement": row_element,
        "permuteElement": permute,
        "sharedStore": shared_store,
        "randomStore": random_store,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wide")
    parser.add_argument("narrow")
    parser.add_argument("fused")
    parser.add_argument("--write")
    options = parser.parse_args()
    wide, narrow, fused = (Measured(path) for path in (options.wide, options.narrow, options.fused))
    target = wide.profile["target"]
    far = next(k for k in wide.profile["kernels"] if k["kernel"].startswith("calibrate_map") and
               k["elements"] == max(x["elements"] for x in wide.profile["kernels"]))["elements"] * 8
    found = constants(wide, narrow, fused, far)
    if target == "cuda":  # there these count by tiles (CostModel::segmentTime), which only kernels of programs tell
        for name in ("numberedElement", "foldedElement", "foldedSegment"):
            del found[name]
    text = "".join(f"    .{name} = {value:.3g},\n" for name, value in found.items())
    print(f"{target}, copy {wide.profile['copyBytesPerSecond'] / 1e9:.1f} GB/s")
    print(text, end="")
    if options.write:
        with open(options.write, encoding="utf-8") as file:
            source = file.read()
        begin = source.find(f'.name = "{target}"')
        end = source.find("};", begin)
        if begin < 0:
            sys.exit(f"calibrate.py: {options.write} has no constants of {target}")
        block = source[begin:end]
        for name, value in found.items():
            block, count = re.subn(rf"(\.{name} = )[^,]*", lambda m: f"{m[1]}{value:.3g}", block)
            if count != 1:
                sys.exit(f"calibrate.py: {options.write} has no constant {name} of {target}")
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(source[:begin] + block + source[end:])


main()
