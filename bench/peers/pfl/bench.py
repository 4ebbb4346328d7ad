"""FedAvg rounds in pfl-research with PyTorch: the same training work, no radio and no compression.

One process to a thread, as pfl spreads users: `torchrun --nproc-per-node 2 bench.py`. Local Adam starts anew
in every round, because pfl makes a new local optimizer for every user.
"""

import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

options = w.parser().parse_args()
w.limit_threads(1)

import numpy as np
import pfl
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal import ops
from pfl.internal.ops.selector import get_framework_module
from pfl.metrics import Metrics, StringMetricName, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn.functional import cross_entropy

torch.set_num_threads(1)
np.random.seed(options.seed)
torch.manual_seed(options.seed)
train_x, train_y, test_x, test_y = w.mnist()
device_x, device_y = map(torch.from_numpy, w.devices(train_x, train_y, options.seed))
test_x, test_y = torch.from_numpy(test_x), torch.from_numpy(test_y)


class Mlp(nn.Sequential):
    def loss(self, inputs, labels):
        return cross_entropy(self(inputs), labels)

    @torch.inference_mode()
    def metrics(self, inputs, labels):
        return {"accuracy": Weighted((self(inputs).argmax(1) == labels).sum().item(), len(labels))}


class Watch(TrainingProcessCallback):
    """Times the rounds and evaluates the central model, each process on its part of the test samples."""

    def __init__(self):
        self.tests = Dataset([test_x, test_y]).get_worker_partition()
        self.seconds, self.accuracy, self.start = [], None, perf_counter()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        if w.due(central_iteration + 1, options.rounds):
            # As CentralEvaluationCallback does it, whose own rhythm is one round off ours.
            metrics = ops.all_reduce_metrics(model.evaluate(self.tests))
            self.accuracy = metrics[StringMetricName("accuracy")].overall_value
        now = perf_counter()
        self.seconds.append(now - self.start)
        self.start = now
        return False, Metrics()


def user(device):
    batches = torch.randperm(w.B)[: w.STEPS * w.BATCH]
    return Dataset([device_x[device][batches], device_y[device][batches]])


module = Mlp(nn.Linear(w.INPUTS, w.HIDDEN), nn.ReLU(), nn.Linear(w.HIDDEN, w.CLASSES))
with torch.no_grad():
    for parameter, start in zip(module.parameters(), w.torch_layout(w.glorot(options.seed))):
        parameter.copy_(torch.from_numpy(start))


def adam(parameters, lr):
    return torch.optim.Adam(parameters, lr, w.BETAS, w.EPSILON, fused=True)


model = PyTorchModel(module, adam, torch.optim.SGD(module.parameters(), lr=1.0))
users = FederatedDataset(user, MinimizeReuseUserSampler(list(range(w.M))))
watch = Watch()
FederatedAveraging().run(
    NNAlgorithmParams(
        central_num_iterations=options.rounds,
        evaluation_frequency=options.rounds + 1,
        train_cohort_size=w.M,
        val_cohort_size=0,
    ),
    SimulatedBackend(users, users),
    model,
    NNTrainHyperParams(
        local_num_epochs=None,
        local_num_steps=w.STEPS,
        local_batch_size=w.BATCH,
        local_learning_rate=w.RATE,
    ),
    NNEvalHyperParams(local_batch_size=None),
    [watch],
)
if get_framework_module().distributed.global_rank == 0:
    versions = {"pfl": pfl.__version__, "torch": torch.__version__}
    w.report("pfl", versions, options, watch.seconds, watch.accuracy)
