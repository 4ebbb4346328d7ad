"""The loop that one writes without fedlink: processes of one thread, each trains its share of the devices
from θ in shared memory and writes updates there; the mean of all is added to θ. No radio, no compression."""

import work
import torch
import torch.multiprocessing


def serve(pipe, theta, updates, sets, first, count):
    torch.set_num_threads(1)
    model = work.model()
    while (seed := pipe.recv()) is not None:
        losses = 0.0
        for m in range(first, len(sets), count):
            torch.manual_seed(seed + m)
            torch.nn.utils.vector_to_parameters(theta.clone(), model.parameters())
            losses += work.train(model, sets[m])
            with torch.no_grad():
                trained = torch.nn.utils.parameters_to_vector(model.parameters())
                torch.sub(trained, theta, out=updates[m])
        pipe.send(losses)


class Loop:
    def __init__(self, sets, workers):
        dim = sum(parameter.numel() for parameter in work.model().parameters())
        self.theta = torch.empty(dim).share_memory_()
        self.updates = torch.empty(len(sets), dim).share_memory_()
        start = torch.multiprocessing.get_context("spawn")
        self.model, self.pipes = work.model(), []
        for first in range(workers):
            ours, theirs = start.Pipe()
            arguments = (theirs, self.theta, self.updates, sets, first, workers)
            start.Process(target=serve, args=arguments, daemon=True).start()
            self.pipes.append(ours)

    def run(self, rounds, seed, test):
        """Accuracy after so many rounds from a new model."""
        torch.manual_seed(seed)
        with torch.no_grad():
            self.theta.copy_(torch.nn.utils.parameters_to_vector(work.model().parameters()))
        for t in range(rounds):
            for pipe in self.pipes:
                pipe.send((seed * rounds + t) * len(self.updates))
            for pipe in self.pipes:
                pipe.recv()
            self.theta += self.updates.mean(0)
        torch.nn.utils.vector_to_parameters(self.theta.clone(), self.model.parameters())
        return float(test(self.model)[0])

    def end(self):
        for pipe in self.pipes:
            pipe.send(None)
