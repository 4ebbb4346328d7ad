"""FedAvg as a Flower app: 40 clients a round, each three steps of Adam in PyTorch."""

import json
import os
from functools import lru_cache
from pathlib import Path
from time import perf_counter

import torch
import workload as w
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from torch import nn
from torch.nn.functional import cross_entropy

client = ClientApp()
server = ServerApp()


def mlp():
    return nn.Sequential(nn.Linear(w.INPUTS, w.HIDDEN), nn.ReLU(), nn.Linear(w.HIDDEN, w.CLASSES))


@lru_cache
def data(seed):
    """The split, read once in each worker process."""
    torch.set_num_threads(1)
    train_x, train_y, _, _ = w.mnist()
    return [torch.from_numpy(part) for part in w.devices(train_x, train_y, seed)]


@client.train()
def train(message, context):
    device = int(context.node_config["partition-id"])
    all_x, all_y = data(int(context.run_config["seed"]))
    x, y = all_x[device], all_y[device]
    model = mlp()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    adam = torch.optim.Adam(model.parameters(), w.RATE, w.BETAS, w.EPSILON, fused=True)
    for _ in range(w.STEPS):
        batch = torch.randperm(w.B)[: w.BATCH]
        adam.zero_grad()
        cross_entropy(model(x[batch]), y[batch]).backward()
        adam.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": w.B})}
    return Message(RecordDict(content), reply_to=message)


@server.main()
def main(grid, context):
    rounds, seed = int(context.run_config["rounds"]), int(context.run_config["seed"])
    torch.set_num_threads(int(context.run_config["threads"]))  # the clients wait while the server evaluates
    _, _, test_x, test_y = map(torch.from_numpy, w.mnist())
    model = mlp()
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), w.torch_layout(w.glorot(seed))):
            parameter.copy_(torch.from_numpy(start))
    times, accuracy = [perf_counter()], [None]

    @torch.inference_mode()
    def evaluate(done, arrays):
        if done == 0:
            times[0] = perf_counter()
            return None
        if w.due(done, rounds):
            model.load_state_dict(arrays.to_torch_state_dict())
            accuracy[0] = (model(test_x).argmax(1) == test_y).double().mean().item()
        times.append(perf_counter())
        return None

    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_available_nodes=w.M)
    strategy.start(
        grid, ArrayRecord(model.state_dict()), rounds, train_config=ConfigRecord(), evaluate_fn=evaluate
    )
    seconds = [after - before for before, after in zip(times, times[1:])]
    Path(os.environ["PEER_RESULT"]).write_text(json.dumps({"seconds": seconds, "accuracy": accuracy[0]}))
