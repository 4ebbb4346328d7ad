"""FedAvg rounds in BlazeFL with PyTorch: the same training work, no radio and no compression.

BlazeFL's FedAvg in its pool of threads, one operation to a thread; its pool of processes is started anew in
every round. Its own server handler samples the clients, makes the package for them and aggregates. Local Adam
starts anew in every round, as BlazeFL's own FedAvg makes a new local optimizer for every client.
"""

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

options = w.parser().parse_args()
w.limit_threads(1)

import torch
from blazefl.contrib.fedavg import (
    FedAvgBaseServerHandler,
    FedAvgThreadPoolClientTrainer,
    FedAvgUplinkPackage,
)
from blazefl.core import ModelSelector, deserialize_model, serialize_model
from torch import nn
from torch.nn.functional import cross_entropy

torch.set_num_threads(1)
torch.manual_seed(options.seed)
train_x, train_y, test_x, test_y = w.mnist()
device_x, device_y = map(torch.from_numpy, w.devices(train_x, train_y, options.seed))
test_x, test_y = torch.from_numpy(test_x), torch.from_numpy(test_y)


class Selector(ModelSelector):
    def select_model(self, model_name):
        return nn.Sequential(nn.Linear(w.INPUTS, w.HIDDEN), nn.ReLU(), nn.Linear(w.HIDDEN, w.CLASSES))


class Clients(FedAvgThreadPoolClientTrainer):
    def progress_fn(self, it):
        return as_completed(it)  # Without the bar on the terminal.

    def worker(self, cid, device, payload, stop_event):
        model = self.model_selector.select_model(self.model_name)
        deserialize_model(model, payload.model_parameters)
        model.train()
        adam = torch.optim.Adam(model.parameters(), w.RATE, w.BETAS, w.EPSILON, fused=True)
        order = torch.randperm(w.B, generator=self.rng_suite_list[cid].torch_cpu)
        for batch in order[: w.STEPS * w.BATCH].split(w.BATCH):
            adam.zero_grad()
            cross_entropy(model(device_x[cid][batch]), device_y[cid][batch]).backward()
            adam.step()
        return FedAvgUplinkPackage(cid, serialize_model(model), w.B)


server = FedAvgBaseServerHandler(
    model_selector=Selector(),
    model_name="mlp",
    dataset=None,
    global_round=options.rounds,
    num_clients=w.M,
    sample_ratio=1.0,
    device="cpu",
    batch_size=w.BATCH,
    seed=options.seed,
)
with torch.no_grad():
    for parameter, start in zip(server.model.parameters(), w.torch_layout(w.glorot(options.seed))):
        parameter.copy_(torch.from_numpy(start))
clients = Clients(
    model_selector=Selector(),
    model_name="mlp",
    dataset=None,
    device="cpu",
    num_clients=w.M,
    epochs=1,
    batch_size=w.BATCH,
    lr=w.RATE,
    seed=options.seed,
    num_parallels=options.threads,
)
threads = ThreadPoolExecutor(options.threads)
tests = list(zip(test_x.chunk(options.threads), test_y.chunk(options.threads)))


@torch.inference_mode()
def correct(part):
    x, y = part
    return (server.model(x).argmax(1) == y).sum().item()


seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    clients.local_process(server.downlink_package(), server.sample_clients())
    for package in clients.uplink_package():
        server.load(package)
    if w.due(t, options.rounds):
        accuracy = sum(threads.map(correct, tests)) / len(test_y)
    seconds.append(perf_counter() - start)
assert server.if_stop()
versions = {"blazefl": version("blazefl"), "torch": torch.__version__}
w.report("blazefl", versions, options, seconds, accuracy)
