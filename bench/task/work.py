"""A stock PyTorch task: a small CNN on MNIST, 40 devices of 1000 samples, 3 steps of Adam a round."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
import workload as w

w.limit_threads(1)

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def train(model, dataset):
    x, y = dataset.tensors
    adam = torch.optim.Adam(model.parameters(), w.RATE, w.BETAS, w.EPSILON)
    total = 0.0
    for batch in torch.randperm(len(y))[: w.STEPS * w.BATCH].split(w.BATCH):
        adam.zero_grad()
        loss = cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        adam.step()
        total += loss.item() / w.STEPS
    return total


class Test:
    """The test samples, and how many of them a model knows."""

    def __init__(self, x, y):
        self.x, self.y = torch.from_numpy(x).view(-1, 1, 28, 28), torch.from_numpy(y)

    def __call__(self, model):
        with torch.no_grad():
            scores = torch.cat([model(part) for part in self.x.split(1000)])
        return (scores.argmax(1) == self.y).float().mean(), cross_entropy(scores, self.y)


def data(seed):
    """A data set for each device, and the test."""
    x, y, test_x, test_y = w.mnist()
    parts_x, parts_y = map(torch.from_numpy, w.devices(x, y, seed))
    sets = [
        torch.utils.data.TensorDataset(x.view(-1, 1, 28, 28).clone(), y.clone())
        for x, y in zip(parts_x, parts_y)
    ]
    return sets, Test(test_x, test_y)
