"""The common part of all peers: the task, the data, the radio's arithmetic, the command line, the line of
results.

Imports numpy alone, so that each peer brings nothing but its own library.
"""

import argparse
import gzip
import json
import math
import os
import platform
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
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def limit_threads(threads):
    """Before the peer's library is imported: the number of threads of OpenMP, MKL and OpenBLAS."""
    for name in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)


def due(t, rounds):
    """Whether round t, counted from one, ends with an evaluation."""
    return t % EVALUATE_EVERY == 0 or t == rounds


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


def torch_layout(layers):
    """The same layers as torch.nn.Linear keeps them, weights transposed."""
    return [np.ascontiguousarray(layer.T) for layer in layers]


def dsgd_bits():
    """r(q) = log2 C(d, q) + 33 for q = 0 .. d/2."""
    n = D // 2
    falling, rising = np.arange(D, D - n, -1, dtype=np.float64), np.arange(1, n + 1, dtype=np.float64)
    steps = np.log2(falling) - np.log2(rising)
    return np.concatenate([[0.0], np.cumsum(steps)]) + 33


class Radio:
    """The uplink of BN2-C: channel, budgets, choice and time split, for peers that keep it outside their
    library."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.bits = dsgd_bits()

    def capacities(self):
        """A new channel: bits per symbol of every device at g ~ Exp(1) and power M·P/K."""
        return np.log2(1 + self.rng.exponential(size=M) * (M * POWER / K) / NOISE)

    def largest_q(self, budgets):
        """The largest q with r(q) within each budget of bits, 0 if none."""
        return np.maximum(np.searchsorted(self.bits, budgets, side="right") - 1, 0)

    def schedule(self, norms, capacities):
        """The K largest norms, ties to the lower index, and the q that each one's share of the time holds."""
        chosen = np.argsort(-norms, kind="stable")[:K]
        weights = norms[chosen] if norms[chosen].any() else np.ones(K)
        time = weights / capacities[chosen]
        return chosen, self.largest_q(SYMBOLS * time / time.sum() * capacities[chosen])


def stronger_side(top, bottom):
    """D-SGD's value and how many entries carry it, of the q largest and the q smallest entries."""
    up, down = top[top > 0], bottom[bottom < 0]
    a = float(up.mean()) if len(up) else 0.0
    b = float(down.mean()) if len(down) else 0.0
    return (a, len(up)) if a >= -b else (b, len(down))


def dsgd_value(delta, q):
    """D-SGD(q) of a numpy array without the indices, which the norm |value|·√count does not need."""
    if q == 0:
        return 0.0, 0
    return stronger_side(np.partition(delta, D - q)[D - q :], np.partition(delta, q - 1)[:q])


def dsgd(delta, q):
    """D-SGD(q) of a numpy array: the indices and the value that they carry."""
    value, count = dsgd_value(delta, q)
    order = np.argpartition(delta, D - count if value > 0 else max(count - 1, 0))
    return (order[D - count :] if value > 0 else order[:count]), value


def report(peer, versions, options, seconds, accuracy):
    """Prints the results as one line of JSON; `seconds` holds every round."""
    line = {
        "program": peer,
        "versions": versions | {"python": platform.python_version()},
        "rounds": options.rounds,
        "threads": options.threads,
        "seed": options.seed,
        "seconds": [round(s, 6) for s in seconds],
        "accuracy": accuracy,
    }
    print(json.dumps(line), flush=True)
