"""What all peers share: the task's numbers, the data, the command line and the line of results.

Imports numpy alone, so that each peer brings nothing but its own library.
"""

import argparse
import gzip
import json
import math
import os
import statistics
from pathlib import Path

import numpy as np

M, B = 40, 1000  # devices, samples on each
STEPS, BATCH, RATE = 3, 64, 1e-3  # local steps, mini-batch, Adam's learning rate
BETAS, EPSILON = (0.9, 0.999), 1e-7
INPUTS, HIDDEN, CLASSES = 784, 256, 10
D = INPUTS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES
K, SYMBOLS, POWER, NOISE = 1, 5000, 1.0, 1.0
EVALUATE_EVERY = 10


def parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=10, help="rounds that the median leaves out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def limit_threads(threads):
    """Before the peer's library is imported: the number of threads of OpenMP, MKL and OpenBLAS."""
    for name in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)


def mnist():
    """MNIST from $FEDLINK_DATA/mnist as float32 in [0, 1] and int64: train x, train y, test x, test y."""
    folder = Path(os.environ["FEDLINK_DATA"]) / "mnist"

    def read(name, header):
        data = gzip.decompress((folder / f"{name}.gz").read_bytes())
        return np.frombuffer(data, np.uint8, offset=header)

    arrays = []
    for part in ("train", "t10k"):
        arrays.append(read(f"{part}-images-idx3-ubyte", 16).reshape(-1, INPUTS).astype(np.float32) / 255)
        arrays.append(read(f"{part}-labels-idx1-ubyte", 8).astype(np.int64))
    return arrays


def devices(x, y, seed):
    """The IID split: B samples for each of M devices without replacement, as (M, B, 784) and (M, B)."""
    order = np.random.default_rng(seed).permutation(len(x))[: M * B]
    return x[order].reshape(M, B, INPUTS), y[order].reshape(M, B)


def glorot(seed):
    """W1 (784, 256), b1, W2 (256, 10), b2: Glorot uniform, zero biases."""
    rng = np.random.default_rng(seed)
    layers = []
    for rows, columns in ((INPUTS, HIDDEN), (HIDDEN, CLASSES)):
        limit = math.sqrt(6 / (rows + columns))
        layers += [rng.uniform(-limit, limit, (rows, columns)), np.zeros(columns)]
    return [layer.astype(np.float32) for layer in layers]


def dsgd_bits():
    """r(q) = log2 C(d, q) + 33 for q = 0 .. d/2; the q of a budget is where it would be inserted, less one."""
    n = D // 2
    steps = np.log2(np.arange(D, D - n, -1, dtype=np.float64)) - np.log2(np.arange(1, n + 1, dtype=np.float64))
    return np.concatenate([[0.0], np.cumsum(steps)]) + 33


def report(peer, task, versions, options, seconds, accuracy, note=""):
    """Prints the results as one line of JSON; `seconds` holds every round, warm-up included."""
    print(
        json.dumps(
            {
                "peer": peer,
                "task": task,
                "versions": versions,
                "rounds": options.rounds,
                "warmup": options.warmup,
                "threads": options.threads,
                "seed": options.seed,
                "seconds_per_round": statistics.median(seconds[options.warmup :]),
                "seconds": [round(s, 6) for s in seconds],
                "accuracy": accuracy,
                "note": note,
            }
        ),
        flush=True,
    )
