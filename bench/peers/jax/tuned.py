"""BN2-C rounds in JAX as fast as we could make them: what is jitted is one device's training, threads take
devices in turn, and numpy's partial sort selects, on JAX's memory.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

options = w.parser().parse_args()
w.limit_threads(1)
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import training

train_x, train_y, test_x, test_y = w.mnist()
fleet_x, fleet_y = (list(map(jax.device_put, part)) for part in w.devices(train_x, train_y, options.seed))
tests = [
    tuple(map(jax.device_put, part))
    for part in zip(np.array_split(test_x, options.threads), np.array_split(test_y, options.threads))
]
radio = w.Radio(options.seed)
draws = [np.random.default_rng([options.seed, m]) for m in range(w.M)]
states = [training.states() for _ in range(w.M)]
train = jax.jit(training.train, donate_argnums=3)
threads = ThreadPoolExecutor(options.threads)


def device(theta, m, q):
    """Trains device m; returns its update and the norm of D-SGD(q) of it."""
    batches = np.stack([draws[m].choice(w.B, w.BATCH, replace=False, shuffle=False) for _ in range(w.STEPS)])
    delta, states[m] = train(theta, fleet_x[m], fleet_y[m], states[m], batches)
    delta = np.asarray(delta)
    value, count = w.dsgd_value(delta, q)
    return delta, abs(value) * count**0.5


@jax.jit
def correct(theta, x, y):
    return (training.logits(theta, x).argmax(axis=1) == y).sum()


def one_round(theta):
    capacities = radio.capacities()
    qs = radio.largest_q(w.SYMBOLS * capacities)
    deltas, norms = zip(*threads.map(device, [theta] * w.M, range(w.M), qs))
    step = np.zeros(w.D, np.float32)
    for m, q in zip(*radio.schedule(np.array(norms), capacities)):
        indices, value = w.dsgd(deltas[m], q)
        step[indices] += value / w.K
    parts = np.split(step, np.cumsum([layer.size for layer in theta])[:-1])
    return [layer + part.reshape(layer.shape) for layer, part in zip(theta, parts)]


theta = list(map(jax.device_put, w.glorot(options.seed)))
seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    theta = one_round(theta)
    if w.due(t, options.rounds):
        hits = threads.map(lambda part: int(correct(theta, *part)), tests)
        accuracy = sum(hits) / len(test_y)
    jax.block_until_ready(theta)
    seconds.append(perf_counter() - start)
w.report("jax-tuned", {"jax": jax.__version__, "numpy": np.__version__}, options, seconds, accuracy)
