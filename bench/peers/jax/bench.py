"""BN2-C rounds in JAX: one jitted function for the whole round, vmap over the devices, lax.top_k to select.

Each thread is a CPU device of JAX's and holds an equal share of the simulated devices.
"""

import os
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workload as w

options = w.parser().parse_args()
w.limit_threads(1)
os.environ["XLA_FLAGS"] = (
    f"--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count={options.threads}"
)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import training
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((options.threads,), ("threads",), axis_types=(jax.sharding.AxisType.Auto,))
whole, split = PartitionSpec(), PartitionSpec("threads")
train_x, train_y, test_x, test_y = w.mnist()
x, y, test_x, test_y = jax.device_put(
    (*w.devices(train_x, train_y, options.seed), test_x, test_y), NamedSharding(mesh, split)
)
bits = w.dsgd_bits()
# top_k needs a fixed size: the entries that the best channel of 10^9 would carry. Larger budgets are cut to
# it.
MAX_Q = int(np.searchsorted(bits, w.SYMBOLS * np.log2(1 + 21 * w.M * w.POWER / w.K / w.NOISE)))
bits = jnp.asarray(bits[: MAX_Q + 1], jnp.float32)


def largest_q(budgets):
    return jnp.maximum(jnp.searchsorted(bits, budgets, side="right") - 1, 0)


def device(theta, x, y, state, key):
    """A device's round: its state and both ends of its update, the strongest entries first."""
    # The 64 largest of 1000 random numbers: a batch without replacement, ten times faster than random.choice.
    batches = lax.top_k(jax.random.uniform(key, (w.STEPS, w.B)), w.BATCH)[1]
    delta, state = training.train(theta, x, y, state, batches)
    return lax.top_k(delta, MAX_Q), lax.top_k(-delta, MAX_Q), state


@jax.shard_map(mesh=mesh, in_specs=(whole, split, split, split, split), out_specs=split, check_vma=False)
def devices(theta, x, y, states, keys):
    return jax.vmap(device, (None, 0, 0, 0, 0))(theta, x, y, states, keys)


def dsgd(up, down, q):
    """D-SGD(q): indices, which of them are kept, and the value of the stronger side."""

    def side(values, indices):
        kept = (jnp.arange(MAX_Q) < q) & (values > 0)
        return indices, kept, jnp.sum(values * kept) / jnp.maximum(kept.sum(), 1)

    (up, up_kept, a), (down, down_kept, b) = side(*up), side(*down)
    return jnp.where(a >= b, up, down), jnp.where(a >= b, up_kept, down_kept), jnp.where(a >= b, a, -b)


@jax.jit(donate_argnums=(0, 1))
def one_round(theta, states, key):
    gain_key, batch_key = jax.random.split(key)
    gains = jax.random.exponential(gain_key, (w.M,))
    capacities = jnp.log2(1 + gains * (w.M * w.POWER / w.K) / w.NOISE)
    ups, downs, states = devices(theta, x, y, states, jax.random.split(batch_key, w.M))
    _, kept, values = jax.vmap(dsgd)(ups, downs, largest_q(w.SYMBOLS * capacities))
    weights, chosen = lax.top_k(jnp.abs(values) * jnp.sqrt(kept.sum(axis=1)), w.K)
    time = jnp.where(weights.any(), weights, 1.0) / capacities[chosen]
    qs = largest_q(w.SYMBOLS * time / time.sum() * capacities[chosen])
    ups, downs = jax.tree.map(lambda ends: ends[chosen], (ups, downs))
    indices, kept, values = jax.vmap(dsgd)(ups, downs, qs)
    flat, unravel = ravel_pytree(theta)
    return unravel(flat.at[indices].add(jnp.where(kept, values[:, None] / w.K, 0.0))), states


@jax.jit
def evaluate(theta):
    return (training.logits(theta, test_x).argmax(axis=1) == test_y).mean()


theta = jax.device_put(w.glorot(options.seed), NamedSharding(mesh, whole))
states = jax.device_put(training.states(w.M), NamedSharding(mesh, split))
key = jax.random.key(options.seed)
seconds = []
for t in range(1, options.rounds + 1):
    start = perf_counter()
    theta, states = one_round(theta, states, jax.random.fold_in(key, t))
    if w.due(t, options.rounds):
        accuracy = float(evaluate(theta))
    jax.block_until_ready(theta)
    seconds.append(perf_counter() - start)
w.report("jax", {"jax": jax.__version__}, options, seconds, accuracy)
