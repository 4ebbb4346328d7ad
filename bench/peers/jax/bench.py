"""BN2-C rounds in JAX: one jitted function for a whole round, vmap over the devices, lax.top_k to select."""

import os
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

options = w.parser().parse_args()
w.limit_threads(options.threads)
# XLA's thread pool takes as many threads as the process has CPUs.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(options.threads > 1).lower()}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

train_x, train_y, test_x, test_y = w.mnist()
x, y = map(jnp.asarray, w.devices(train_x, train_y, options.seed))
test_x, test_y = jnp.asarray(test_x), jnp.asarray(test_y)
theta, unravel = ravel_pytree(w.glorot(options.seed))
bits = w.dsgd_bits()
# top_k needs a fixed size: what the best channel of 10^9 would hold. Larger budgets than that are cut to it.
MOST_Q = int(np.searchsorted(bits, w.SYMBOLS * np.log2(1 + 21 * w.M * w.POWER / w.K / w.NOISE)))
bits = jnp.asarray(bits[: MOST_Q + 1], jnp.float32)


def logits(flat, inputs):
    w1, b1, w2, b2 = unravel(flat)
    return jax.nn.relu(inputs @ w1 + b1) @ w2 + b2


def loss(flat, inputs, labels):
    scores = jax.nn.log_softmax(logits(flat, inputs))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def train(theta, x, y, first, second, count, key):
    """One device: three steps of Adam from theta; returns the update and the moments."""

    def step(carry, key):
        local, first, second, count = carry
        batch = jax.random.choice(key, w.B, (w.BATCH,), replace=False)
        gradient = jax.grad(loss)(local, x[batch], y[batch])
        (b1, b2), count = w.BETAS, count + 1
        first = b1 * first + (1 - b1) * gradient
        second = b2 * second + (1 - b2) * gradient**2
        rate = w.RATE / (1 - b1**count)
        local = local - rate * first / (jnp.sqrt(second / (1 - b2**count)) + w.EPSILON)
        return (local, first, second, count), None

    carry, _ = lax.scan(step, (theta, first, second, count), jax.random.split(key, w.STEPS))
    local, first, second, count = carry
    return local - theta, first, second, count


def dsgd(delta, q):
    """D-SGD(q): places, which of them are kept, and the value of the stronger side."""

    def side(signed):
        values, places = lax.top_k(signed, MOST_Q)
        kept = (jnp.arange(MOST_Q) < q) & (values > 0)
        return places, kept, jnp.sum(values * kept) / jnp.maximum(kept.sum(), 1)

    (up, up_kept, a), (down, down_kept, b) = side(delta), side(-delta)
    return jnp.where(a >= b, up, down), jnp.where(a >= b, up_kept, down_kept), jnp.where(a >= b, a, -b)


@jax.jit(donate_argnums=(0, 1))
def one_round(theta, states, key):
    gain_key, *keys = jax.random.split(key, w.M + 1)
    deltas, *states = jax.vmap(train, (None, 0, 0, 0, 0, 0, 0))(theta, x, y, *states, jnp.stack(keys))
    gains = jax.random.exponential(gain_key, (w.M,))
    capacities = jnp.log2(1 + gains * (w.M * w.POWER / w.K) / w.NOISE)
    # K = 1: the scheduled device has all symbols, so that q* is also the q that it sends with.
    qs = jnp.maximum(jnp.searchsorted(bits, w.SYMBOLS * capacities, side="right") - 1, 0)
    places, kept, values = jax.vmap(dsgd)(deltas, qs)
    best = jnp.argmax(jnp.abs(values) * jnp.sqrt(kept.sum(axis=1)))
    return theta.at[places[best]].add(jnp.where(kept[best], values[best] / w.K, 0.0)), states


@jax.jit
def evaluate(theta):
    return (logits(theta, test_x).argmax(axis=1) == test_y).mean()


states = [jnp.zeros((w.M, w.D)), jnp.zeros((w.M, w.D)), jnp.zeros(w.M)]
key = jax.random.key(options.seed)
seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    theta, states = one_round(theta, states, jax.random.fold_in(key, t))
    if t % w.EVALUATE_EVERY == 0 or t == options.rounds:
        accuracy = float(evaluate(theta))
    theta.block_until_ready()
    seconds.append(perf_counter() - start)
w.report("jax", "bn2-c", {"jax": jax.__version__, "jaxlib": jax.lib.__version__}, options, seconds, accuracy)
