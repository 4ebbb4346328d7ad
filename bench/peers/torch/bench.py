"""BN2-C rounds in PyTorch: a loop over the devices, each on flat buffers of its own, torch.topk to select.

Threads take devices in turn, one operation to a thread; threads within operations are slower at these sizes.
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


def mlp(flat):
    """The model, its parameters views of `flat`."""
    model = nn.Sequential(nn.Linear(w.INPUTS, w.HIDDEN), nn.ReLU(), nn.Linear(w.HIDDEN, w.CLASSES))
    parameters = list(model.parameters())
    for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters])):
        parameter.data = part.view_as(parameter)
    return model


class Device:
    def __init__(self, m):
        self.x, self.y = fleet_x[m], fleet_y[m]
        self.generator = torch.Generator().manual_seed(options.seed * w.M + m)
        self.flat = torch.empty(w.D)
        self.model = mlp(self.flat)
        self.adam = torch.optim.Adam(self.model.parameters(), w.RATE, w.BETAS, w.EPSILON, fused=True)

    def train(self, theta):
        """Three steps of Adam from theta; returns the update."""
        self.flat.copy_(theta)
        for _ in range(w.STEPS):
            batch = torch.randperm(w.B, generator=self.generator)[: w.BATCH]
            self.adam.zero_grad()
            cross_entropy(self.model(self.x[batch]), self.y[batch]).backward()
            self.adam.step()
        return self.flat - theta


def ends(delta, q):
    """The q largest and the q smallest entries with their indices."""
    return torch.topk(delta, q, sorted=False), torch.topk(delta, q, largest=False, sorted=False)


def device_round(device, theta, q):
    """Trains a device; returns its update and the norm of D-SGD(q) of it."""
    delta = device.train(theta)
    value, count = w.stronger_side(*(end.values for end in ends(delta, int(q))))
    return delta, abs(value) * count**0.5


def one_round(theta):
    capacities = radio.capacities()
    qs = radio.largest_q(w.SYMBOLS * capacities)
    deltas, norms = zip(*threads.map(device_round, fleet, [theta] * w.M, qs))
    for m, q in zip(*radio.schedule(np.array(norms), capacities)):
        top, bottom = ends(deltas[m], int(q))
        value, _ = w.stronger_side(top.values, bottom.values)
        indices = top.indices[top.values > 0] if value > 0 else bottom.indices[bottom.values < 0]
        theta[indices] += value / w.K


fleet = [Device(m) for m in range(w.M)]
theta = torch.cat([torch.from_numpy(layer).view(-1) for layer in w.torch_layout(w.glorot(options.seed))])
model = mlp(theta)
tests = list(zip(test_x.chunk(options.threads), test_y.chunk(options.threads)))


@torch.inference_mode()
def correct(part):
    x, y = part
    return (model(x).argmax(1) == y).sum().item()


seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    one_round(theta)
    if w.due(t, options.rounds):
        accuracy = sum(threads.map(correct, tests)) / len(test_y)
    seconds.append(perf_counter() - start)
w.report("torch", {"torch": torch.__version__}, options, seconds, accuracy)
