#!/usr/bin/env python3
"""Peers of vectors.nesl in PyTorch, under torch.compile, in float32: lines of JSON.

    vectors_torch.py vectors|vector|options N

"ms" is the host's time from the call until the result is there, as `kelpie bench` counts; "device_ms" that of one call of many
without waits. Medians; of the two modes of torch.compile the faster one counts.
"""
import json
import statistics
import sys
import time

import torch


def mixed(i):
    mask = 4611686018427387903
    a = (i + 1) * 1181783497276652981 & mask
    b = (a ^ (a >> 29)) * 2549297995355413927 & mask
    return b ^ (b >> 32)


def scaled(i, begin, end):
    fraction = torch.remainder(mixed(i), 1073741824).to(torch.float32) / 1073741824.0
    return begin + (end - begin) * fraction


def dot(xs, ys):
    return (xs * ys).sum()


def norm2(xs):
    return xs / xs.sum(), xs / torch.where(xs > 0, xs, 0).sum()


def cumulative(d):
    k = 1.0 / (1.0 + 0.2316419 * d.abs())
    tail = (0.39894228 * torch.exp(-0.5 * d * d) * k *
            (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))))
    return torch.where(d < 0, tail, 1.0 - tail)


def black_scholes(spots, strikes, years):
    deviation = 0.3 * years.sqrt()
    d1 = (torch.log(spots / strikes) + 0.065 * years) / deviation
    return spots * cumulative(d1) - strikes * torch.exp(-0.02 * years) * cumulative(d1 - deviation)


def digest(job, result):
    if job == "norm2":
        return float((result[1].to(torch.float64) * (result[1] > 0)).sum() + result[0].to(torch.float64).sum())
    return float(result.to(torch.float64).mean())


def milliseconds(call):
    """Host time of a call with its wait, and time of a call among many."""
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    single = []
    for _ in range(60):
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        single.append(1e3 * (time.perf_counter() - begin))
    many = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(20):
            call()
        torch.cuda.synchronize()
        many.append(1e3 * (time.perf_counter() - begin) / 20)
    return statistics.median(single), statistics.median(many)


def main():
    kind, n = sys.argv[1], int(sys.argv[2])
    i = torch.arange(n, dtype=torch.int64, device="cuda")
    job, data = {
        "vectors": lambda: (dot, (scaled(2 * i, -1.0, 1.0), scaled(2 * i, 0.0, 1.0))),
        "vector": lambda: (norm2, (scaled(i, -0.5, 1.0),)),
        "options": lambda: (black_scholes, (scaled(3 * i, 5.0, 30.0), scaled(3 * i + 1, 1.0, 100.0), scaled(3 * i + 2, 0.25, 10.0))),
    }[kind]()
    del i
    for mode in ("default", "max-autotune-no-cudagraphs"):
        torch._dynamo.reset()
        compiled = torch.compile(job, mode=mode)
        single, many = milliseconds(lambda: compiled(*data))
        print(json.dumps({"job": job.__name__, "who": "torch.compile", "mode": mode, "ms": single, "device_ms": many,
                          "digest": digest(job.__name__, compiled(*data))}), flush=True)


if __name__ == "__main__":
    main()
