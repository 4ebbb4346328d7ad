"""Training steps of fedlink's CNN in PyTorch, on one thread: two 5×5 convolutions with 32 and 64 channels
that do not leave the image, each with ReLU and 2×2 maximum pooling, then 512 units and 10 classes; Adam.

`cnn.py HEIGHT WIDTH CHANNELS`; then each line of the input asks for as many steps, and a line with their
seconds of processor time answers. So two programs can take turns. Memory formats are tried first, and the
faster one is kept.
"""

import os
import sys
from time import process_time

for name in ("OMP", "MKL", "OPENBLAS"):
    os.environ[f"{name}_NUM_THREADS"] = "1"

import torch
from torch import nn
from torch.nn.functional import cross_entropy

BATCH = 64
torch.set_num_threads(1)
torch.manual_seed(0)
height, width, channels = map(int, sys.argv[1:])


def training(memory_format):
    """A step of training on random images."""
    shrunk = [((side - 4) // 2 - 4) // 2 for side in (height, width)]
    model = nn.Sequential(
        *(nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * shrunk[0] * shrunk[1], 512), nn.ReLU(), nn.Linear(512, 10)),
    ).to(memory_format=memory_format)
    adam = torch.optim.Adam(model.parameters(), 1e-3, (0.9, 0.999), 1e-7, fused=True)
    images = torch.rand(BATCH, channels, height, width).to(memory_format=memory_format)
    labels = torch.randint(10, (BATCH,))

    def step():
        adam.zero_grad()
        cross_entropy(model(images), labels).backward()
        adam.step()

    return step


def seconds(step, count):
    """Processor time of each of `count` steps."""
    times = []
    for _ in range(count):
        start = process_time()
        step()
        times.append(process_time() - start)
    return times


steps = [training(layout) for layout in (torch.contiguous_format, torch.channels_last)]
best = min(steps, key=lambda step: min(seconds(step, 8)))
print("channels last" if best is steps[1] else "channels first", torch.__version__, flush=True)
for line in sys.stdin:
    print(*seconds(best, int(line)), flush=True)
