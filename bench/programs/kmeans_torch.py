#!/usr/bin/env python3
"""Peer of kmeans.nesl in PyTorch: a step under torch.compile, ten of them, the median of 30 runs.

    kmeans_torch.py N K [float32|float64]

Two ways to sum by centre, of which the faster one counts: a comparison with every centre, and index_add.
"""
import json
import statistics
import sys

import torch


def mixed(i):
    mask = 4611686018427387903
    a = (i + 1) * 1181783497276652981 & mask
    b = (a ^ (a >> 29)) * 2549297995355413927 & mask
    return b ^ (b >> 32)


def fraction(i, kind):
    return (torch.remainder(mixed(i), 1073741824).to(torch.float64) / 1073741824.0).to(kind)


def nearest(points, centres):
    x, y = points
    cx, cy = centres
    return ((x[:, None] - cx[None, :]) ** 2 + (y[:, None] - cy[None, :]) ** 2).argmin(1)


def by_comparison(points, centres):
    x, y = points
    mine = nearest(points, centres)[:, None] == torch.arange(centres.shape[1], device=x.device)[None, :]
    count = mine.sum(0).clamp(min=1).to(x.dtype)
    return torch.stack((torch.where(mine, x[:, None], 0).sum(0) / count, torch.where(mine, y[:, None], 0).sum(0) / count))


def by_index(points, centres):
    k = centres.shape[1]
    mine = nearest(points, centres)
    sums = torch.zeros((2, k), dtype=points.dtype, device=points.device).index_add(1, mine, points)
    ones = torch.ones_like(points[0])
    count = torch.zeros(k, dtype=points.dtype, device=points.device).index_add(0, mine, ones).clamp(min=1)
    return sums / count


def main():
    n, k = int(sys.argv[1]), int(sys.argv[2])
    kind = getattr(torch, sys.argv[3] if len(sys.argv) > 3 else "float64")
    i = torch.arange(n, dtype=torch.int64, device="cuda")
    c = torch.arange(k, dtype=torch.int64, device="cuda")
    points = torch.stack((fraction(2 * i, kind), fraction(2 * i + 1, kind)))
    begin = torch.stack((fraction(-1 - 2 * c, kind), fraction(-2 - 2 * c, kind)))
    for way in (by_comparison, by_index):
        step = torch.compile(way, mode="max-autotune-no-cudagraphs")
        times = []
        for run in range(35):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            centres = begin
            start.record()
            for _ in range(10):
                centres = step(points, centres)
            stop.record()
            stop.synchronize()
            if run >= 5:
                times.append(start.elapsed_time(stop))
        digest = float((centres[0] + 2.0 * centres[1]).to(torch.float64).sum())
        print(json.dumps({"job": "kmeans", "way": way.__name__, "type": str(kind), "ms": statistics.median(times),
                          "digest": digest}), flush=True)


if __name__ == "__main__":
    main()
