"""BN2-C rounds in PyTorch: each device on flat buffers of its own, torch.topk to select.

Two ways to use the threads: within each operation (the default), or one device to a thread (--pool).
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

parser = w.parser()
parser.add_argument("--pool", action="store_true", help="one device to a thread, one thread to an operation")
options = parser.parse_args()
within = 1 if options.pool else options.threads
w.limit_threads(within)

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.set_num_threads(within)
torch.manual_seed(options.seed)
train_x, train_y, test_x, test_y = map(torch.from_numpy, w.mnist())
device_x, device_y = map(torch.from_numpy, w.devices(train_x.numpy(), train_y.numpy(), options.seed))
bits = torch.from_numpy(w.dsgd_bits())


class Device:
    """A model whose parameters are views of one flat buffer, with an Adam of its own."""

    def __init__(self, x=None, y=None, seed=0):
        self.x, self.y = x, y
        self.generator = torch.Generator().manual_seed(seed)
        self.flat = torch.empty(w.D)
        self.model = nn.Sequential(nn.Linear(w.INPUTS, w.HIDDEN), nn.ReLU(), nn.Linear(w.HIDDEN, w.CLASSES))
        at = 0
        for parameter in self.model.parameters():
            view = self.flat[at : at + parameter.numel()].view_as(parameter)
            parameter.data = view
            at += parameter.numel()
        self.adam = torch.optim.Adam(
            self.model.parameters(), lr=w.RATE, betas=w.BETAS, eps=w.EPSILON, fused=True
        )

    def train(self, theta):
        """Three steps of Adam from theta; returns the update."""
        self.flat.copy_(theta)
        for _ in range(w.STEPS):
            batch = torch.randperm(w.B, generator=self.generator)[: w.BATCH]
            self.adam.zero_grad()
            cross_entropy(self.model(self.x[batch]), self.y[batch]).backward()
            self.adam.step()
        return self.flat - theta


def dsgd(delta, q):
    """D-SGD(q): the places and the value of the stronger side."""
    if q == 0:
        return torch.empty(0, dtype=torch.long), 0.0
    top, bottom = torch.topk(delta, q, sorted=False), torch.topk(delta, q, largest=False, sorted=False)
    up, down = top.values > 0, bottom.values < 0
    a, b = top.values[up].mean().nan_to_num().item(), bottom.values[down].mean().nan_to_num().item()
    return (top.indices[up], a) if a >= -b else (bottom.indices[down], b)


def train_and_compress(device, theta, q):
    return dsgd(device.train(theta), q)


def one_round(theta):
    gains = torch.empty(w.M, dtype=torch.float64).exponential_()
    capacities = torch.log2(1 + gains * (w.M * w.POWER / w.K) / w.NOISE)
    # K = 1: the scheduled device has all symbols, so that what it reported on is what it sends.
    qs = (torch.searchsorted(bits, w.SYMBOLS * capacities, right=True) - 1).clamp_(min=0).tolist()
    sent = list(map_devices(train_and_compress, fleet, [theta] * w.M, qs))
    places, value = max(sent, key=lambda update: abs(update[1]) * len(update[0]) ** 0.5)
    theta[places] += value / w.K


map_devices = ThreadPoolExecutor(options.threads).map if options.pool else map
fleet = [Device(x, y, options.seed * w.M + m) for m, (x, y) in enumerate(zip(device_x, device_y))]
w1, b1, w2, b2 = map(torch.from_numpy, w.glorot(options.seed))
theta = torch.cat([w1.T.reshape(-1), b1, w2.T.reshape(-1), b2])
evaluator = Device()


@torch.inference_mode()
def evaluate():
    evaluator.flat.copy_(theta)
    return (evaluator.model(test_x).argmax(1) == test_y).double().mean().item()


seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    one_round(theta)
    if t % w.EVALUATE_EVERY == 0 or t == options.rounds:
        accuracy = evaluate()
    seconds.append(perf_counter() - start)
peer = "torch-pool" if options.pool else "torch"
w.report(peer, "bn2-c", {"torch": torch.__version__}, options, seconds, accuracy)
