"""JAX: a whole epoch is one compiled scan over batches; compiling is not timed.

The default generator (threefry) is the fastest of those on offer here, once compiled into the loop.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import work as w


def draw(key, means):
    return (jax.random.uniform(key, means.shape) < means).astype(jnp.float32)


def step(n, state, rows):
    parameters, speeds, chains, key = state
    weights, visible_bias, hidden_bias = parameters
    key, for_visible, for_hidden = jax.random.split(key, 3)
    fantasies = draw(for_visible, jax.nn.sigmoid(chains @ weights.T + visible_bias))
    visible = jnp.concatenate([rows, fantasies])
    hidden = jax.nn.sigmoid(visible @ weights + hidden_bias)
    chains = draw(for_hidden, hidden[n:])
    signed = jnp.concatenate([hidden[:n], -hidden[n:]])
    gradients = (visible.T @ signed, rows.sum(0) - fantasies.sum(0), signed.sum(0))
    speeds = jax.tree.map(lambda s, g: w.MOMENTUM * s + (w.LEARNING_RATE / n) * g, speeds, gradients)
    parameters = jax.tree.map(jnp.add, parameters, speeds)
    return (parameters, speeds, chains, key), None


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def epoch(n, state, batches):
    return jax.lax.scan(functools.partial(step, n), state, batches)[0]


def first_state(work):
    rng = np.random.default_rng(w.SEED)
    parameters = (
        jnp.asarray(w.first_weights(work, rng)),
        jnp.asarray(work.base_bias()),
        jnp.zeros(w.N_HIDDEN, dtype=jnp.float32),
    )
    chains = jnp.asarray(rng.random((work.batch, w.N_HIDDEN)) < 0.5, dtype=jnp.float32)
    return parameters, jax.tree.map(jnp.zeros_like, parameters), chains, jax.random.key(w.SEED)


def train(work):
    batches = jnp.asarray(work.train_rows().reshape(-1, work.batch, 784))
    compiled = epoch.lower(work.batch, first_state(work), batches).compile()
    state = first_state(work)

    def epochs(state):
        for _ in range(work.epochs):
            state = compiled(state, batches)
        return jax.block_until_ready(state)

    seconds, (parameters, *_) = w.timed(lambda: epochs(state))
    return seconds, w.learned(*parameters, work.test_rows())


@jax.jit
def gibbs(parameters, visible, key):
    weights, visible_bias, hidden_bias = parameters

    def sweep(_, state):
        visible, key = state
        key, for_visible, for_hidden = jax.random.split(key, 3)
        hidden = draw(for_hidden, jax.nn.sigmoid(visible @ weights + hidden_bias))
        return draw(for_visible, jax.nn.sigmoid(hidden @ weights.T + visible_bias)), key

    return jax.lax.fori_loop(0, w.N_SWEEPS, sweep, (visible, key))[0]


def sample(work):
    parameters = tuple(map(jnp.asarray, work.model()))
    start = np.random.default_rng(w.SEED).random((w.N_CHAINS_SAMPLED, 784)) < 0.5
    arguments = (parameters, jnp.asarray(start, dtype=jnp.float32), jax.random.key(w.SEED))
    compiled = gibbs.lower(*arguments).compile()
    seconds, visible = w.timed(lambda: jax.block_until_ready(compiled(*arguments)))
    return seconds, {"mean_pixel": float(np.asarray(visible).mean(dtype=np.float64))}


@jax.jit
def means(weights, hidden_bias, rows):
    return jax.nn.sigmoid(rows @ weights + hidden_bias)


def features(work):
    weights, _, hidden_bias = map(jnp.asarray, work.model())
    arguments = (weights, hidden_bias, jnp.asarray(work.train_rows()))
    compiled = means.lower(*arguments).compile()
    seconds, hidden = w.timed(lambda: jax.block_until_ready(compiled(*arguments)))
    return seconds, {"mean_feature": float(np.asarray(hidden).mean(dtype=np.float64))}
