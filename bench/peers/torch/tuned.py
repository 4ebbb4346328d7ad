"""BN2-C rounds in PyTorch as fast as we could make them: each thread trains its share of the devices as one
batch of matrices, and numpy's partial sort selects, on PyTorch's memory.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

options = w.parser().parse_args()
w.limit_threads(1)

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.set_num_threads(1)
train_x, train_y, test_x, test_y = map(torch.from_numpy, w.mnist())
fleet_x, fleet_y = map(torch.from_numpy, w.devices(train_x.numpy(), train_y.numpy(), options.seed))
radio = w.Radio(options.seed)
threads = ThreadPoolExecutor(options.threads)


def logits(layers, x):
    """The scores of every device's model on its own samples."""
    w1, b1, w2, b2 = layers
    return torch.baddbmm(b2[:, None], torch.baddbmm(b1[:, None], x, w1).relu(), w2)


class Share:
    """Some of the devices; parameters and moments have a device's index in front."""

    def __init__(self, devices):
        self.devices = devices
        self.rows = torch.tensor(devices)[:, None]
        self.generator = torch.Generator().manual_seed(options.seed * w.M + devices[0])
        self.layers = [nn.Parameter(layer.repeat(len(devices), *[1] * layer.dim())) for layer in theta]
        self.adam = torch.optim.Adam(self.layers, w.RATE, w.BETAS, w.EPSILON, fused=True)

    def round(self, theta, qs):
        """Trains the devices; returns for each its update and the norm of D-SGD(q) of it."""
        with torch.no_grad():
            for layer, start in zip(self.layers, theta):
                layer.copy_(start)
        for _ in range(w.STEPS):
            batch = torch.stack(
                [torch.randperm(w.B, generator=self.generator)[: w.BATCH] for _ in self.devices]
            )
            scores = logits(self.layers, fleet_x[self.rows, batch])
            self.adam.zero_grad()
            # Each device's loss is the mean over its own batch.
            loss = cross_entropy(scores.flatten(0, 1), fleet_y[self.rows, batch].flatten(), reduction="sum")
            (loss / w.BATCH).backward()
            self.adam.step()
        with torch.no_grad():
            steps = [(layer - start).flatten(1) for layer, start in zip(self.layers, theta)]
        deltas = torch.cat(steps, 1).numpy()
        values = [w.dsgd_value(delta, q) for delta, q in zip(deltas, qs[self.devices])]
        return [(delta, abs(value) * count**0.5) for delta, (value, count) in zip(deltas, values)]


def one_round(theta):
    capacities = radio.capacities()
    qs = radio.largest_q(w.SYMBOLS * capacities)
    reports = threads.map(lambda share: share.round(theta, qs), shares)
    deltas, norms = zip(*(report for share in reports for report in share))
    step = torch.zeros(w.D)
    for m, q in zip(*radio.schedule(np.array(norms), capacities)):
        indices, value = w.dsgd(deltas[m], q)
        step[indices] += value / w.K
    for layer, part in zip(theta, step.split([layer.numel() for layer in theta])):
        layer += part.view_as(layer)


theta = list(map(torch.from_numpy, w.glorot(options.seed)))
shares = [Share(part.tolist()) for part in np.array_split(np.arange(w.M), options.threads)]
tests = list(zip(test_x.chunk(options.threads), test_y.chunk(options.threads)))


@torch.inference_mode()
def correct(part):
    x, y = part
    return (logits([layer[None] for layer in theta], x[None])[0].argmax(1) == y).sum().item()


seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    one_round(theta)
    if w.due(t, options.rounds):
        accuracy = sum(threads.map(correct, tests)) / len(test_y)
    seconds.append(perf_counter() - start)
versions = {"torch": torch.__version__, "numpy": np.__version__}
w.report("torch-tuned", versions, options, seconds, accuracy)
