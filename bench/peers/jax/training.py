"""The model and the local training, which both programs for JAX share.

Parameters and Adam's moments stay pytrees: with one flat vector XLA copies every gradient once more to join
it, and training takes half as long again.
"""

import jax
import jax.numpy as jnp
import workload as w
from jax import lax


def states(*shape):
    """Adam at its start for `shape` devices: first moments, second moments, steps."""
    zeros = [jnp.zeros((*shape, *layer.shape)) for layer in w.glorot(0)]
    return zeros, [jnp.zeros_like(layer) for layer in zeros], jnp.zeros(shape)


def logits(theta, inputs):
    w1, b1, w2, b2 = theta
    return jax.nn.relu(inputs @ w1 + b1) @ w2 + b2


def loss(theta, inputs, labels):
    scores = jax.nn.log_softmax(logits(theta, inputs))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def train(theta, x, y, state, batches):
    """One device: a step of Adam on each batch, from theta; returns the flat update and the state."""
    b1, b2 = w.BETAS

    def step(carry, batch):
        local, first, second, count = carry
        gradient = jax.grad(loss)(local, x[batch], y[batch])
        count = count + 1
        first = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, first, gradient)
        second = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, second, gradient)
        rate, scale = w.RATE / (1 - b1**count), 1 / (1 - b2**count)
        local = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(scale * v) + w.EPSILON), local, first, second
        )
        return (local, first, second, count), None

    (local, *state), _ = lax.scan(step, (theta, *state), batches, unroll=True)
    return jnp.concatenate([(p - start).ravel() for p, start in zip(local, theta)]), tuple(state)
