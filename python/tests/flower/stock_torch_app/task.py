"""A small network with batch normalization, and noisy images of ten patterns to classify."""

import torch

CLASSES, PIXELS = 10, 64


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(PIXELS, 32)
        self.norm = torch.nn.BatchNorm1d(32)
        self.last = torch.nn.Linear(32, CLASSES)

    def forward(self, images):
        return self.last(torch.relu(self.norm(self.first(images))))


def samples(seed, count):
    """Images and labels; every node has its own seed."""
    patterns = torch.randn(CLASSES, PIXELS, generator=torch.Generator().manual_seed(1))
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=rng)
    return patterns[labels] + torch.randn(count, PIXELS, generator=rng), labels


def train(model, seed):
    inputs, labels = samples(seed, 300)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(3):
        for batch in torch.arange(len(labels)).split(30):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model):
    inputs, labels = samples(999, 1000)
    model.eval()
    return (model(inputs).argmax(1) == labels).float().mean().item()
