"""A ResNet-8 in PyTorch on CIFAR-10, trained by ten devices over a fading uplink with BN2-C and EF21.

    fedlink data get cifar10
    python examples/cifar10-resnet/train.py

Stated before any run: at least 50 % of the test images after 40 rounds. Every device keeps its optimizer
(Adam) and its BatchNorm statistics; fedlink schedules (5 of 10 by the norm of the update that would arrive),
compresses (sparse ternary, about 1 bit per entry) and keeps the states of EF21 on both sides.
"""

import argparse
import functools
import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, relu

import fedlink
import fedlink.torch


class Block(nn.Module):
    """Two convolutions and the way past them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        same = stride == 1 and inputs == outputs
        self.past = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = relu(self.norms[0](self.first(x)))
        return relu(self.norms[1](self.second(y)) + self.past(x))


class ResNet8(nn.Module):
    """Seven 3 × 3 convolutions, six of them in three blocks, and a linear layer: d = 77 850 in color."""

    def __init__(self, channels=3, width=16, classes=10):
        super().__init__()
        self.first, self.norm = nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)
        )
        self.last = nn.Linear(4 * width, classes)

    def forward(self, x):
        return self.last(self.blocks(relu(self.norm(self.first(x)))).mean((2, 3)))


def images(x):
    """Bytes N × height × width (× channels) as tensors N × channels × height × width."""
    x = torch.from_numpy(x)
    return x.unsqueeze(1) if x.dim() == 3 else x.permute(0, 3, 1, 2).contiguous()


def inputs(x):
    return x.float().div_(127.5).sub_(1)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=2e-3)


def train(model, dataset, optimizer, steps, batch):
    """Some steps on batches drawn without replacement, half of their images mirrored."""
    x, y = dataset.tensors
    order, total = torch.randperm(len(y)), 0.0
    for chosen in order[: steps * batch].split(batch):
        mirrored = torch.rand(len(chosen)) < 0.5
        samples = inputs(x[chosen])
        samples[mirrored] = samples[mirrored].flip(3)
        optimizer.zero_grad()
        loss = cross_entropy(model(samples), y[chosen])
        loss.backward()
        optimizer.step()
        total += loss.item() / len(order[: steps * batch].split(batch))
    return total


def evaluate(model, x, y):
    scores = torch.cat([model(inputs(part)) for part in x.split(500)])
    return {
        "accuracy": (scores.argmax(1) == y).float().mean(),
        "loss": cross_entropy(scores, y),
        "confidence": scores.softmax(1).max(1).values.mean(),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--samples", type=int, default=2000, help="of each device")
    parser.add_argument("--steps", type=int, default=8, help="local steps in a round")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--symbols", type=float, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, default=0.5, help="least accuracy at the end")
    parser.add_argument("--checkpoint", help="file to save the run in, and to resume it from")
    options = parser.parse_args(arguments)

    config = {
        "data.dataset": options.dataset,
        "data.devices": options.devices,
        "data.samples_per_device": options.samples,
        "schedule.policy": "bn2-c",
        "schedule.k": options.devices // 2,
        "compress.scheme": "stc",
        "compress.feedback": "ef21",
        "radio.symbols": options.symbols,
        "learn.state": "keep",
        "run.rounds": options.rounds,
        "run.evaluate_every": 10,
        "run.seed": options.seed,
    }
    data, split = fedlink.dataset(options.dataset), fedlink.split(config)
    x, y = images(data.x_train), torch.from_numpy(data.y_train).long()
    task = fedlink.torch.Task(
        functools.partial(ResNet8, channels=x.shape[1]),
        [torch.utils.data.TensorDataset(x[samples], y[samples]) for samples in split],
        functools.partial(train, steps=options.steps, batch=options.batch),
        functools.partial(evaluate, x=images(data.x_test), y=torch.from_numpy(data.y_test).long()),
        optimizer=adam,
        workers=options.workers,
    )
    start = time.perf_counter()
    result = fedlink.simulate(config, task=task, checkpoint=options.checkpoint, checkpoint_every=10)
    minutes = (time.perf_counter() - start) / 60
    accuracy = result.summary["final_accuracy"]
    print(f"{accuracy:.2%} after {options.rounds} rounds in {minutes:.1f} minutes")
    print(f"{result.summary['bits_per_round']:.0f} bits a round, digest {result.digest[:12]}")
    print(f"mean confidence {result.rounds['confidence'][-1]:.3f}")
    if accuracy < options.target:
        print(f"below the stated {options.target:.0%}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
