"""Random small Bayes nets and Markov random fields."""

import numpy as np

from maxent.models import BayesNet, MarkovRandomField


def random_parents(rng, names, most=3):
    """A random acyclic structure over names, in random order."""
    names = [str(name) for name in rng.permutation(names)]
    out = {}
    for k, name in enumerate(names):
        count = int(rng.integers(0, min(k, most) + 1))
        out[name] = [str(p) for p in rng.choice(names[:k], count, replace=False)]
    return out


def random_net(rng, sizes, observed=None, parents=None, zeros=False):
    """Bayes net over {name: size}, its factors in random order."""
    parents = random_parents(rng, list(sizes)) if parents is None else parents
    factors = []
    for name, above in parents.items():
        shape = [sizes[p] for p in above]
        table = rng.dirichlet(np.ones(sizes[name]), size=shape)
        if zeros and sizes[name] > 1:
            table[..., int(rng.integers(sizes[name]))] = 0.0
            table /= table.sum(axis=-1, keepdims=True)
        factors.append(((*above, name), table))
    factors = [factors[k] for k in rng.permutation(len(factors))]
    return BayesNet(factors, observed)


def random_field(rng, sizes, observed=None, n_factors=None, scale=1.0, forbid=0.0):
    """Random field of factors over one to three nodes; every node is in one."""
    names = list(sizes)
    n_factors = len(names) if n_factors is None else n_factors
    scopes = [(name,) for name in names]
    for _ in range(n_factors):
        count = min(int(rng.integers(1, 4)), len(names))
        scopes.append(tuple(str(n) for n in rng.choice(names, count, replace=False)))
    factors = []
    for scope in scopes:
        table = scale * rng.normal(size=[sizes[n] for n in scope])
        table[rng.random(table.shape) < forbid] = -np.inf
        factors.append((scope, table))
    return MarkovRandomField(factors, observed)


def log_factors(model):
    """Factors of either kind, as logarithms."""
    if isinstance(model, MarkovRandomField):
        return list(model.log_factors)
    with np.errstate(divide="ignore"):
        return [(nodes, np.log(t)) for nodes, t in model.factors]


def random_rows(rng, sizes, n, missing=0.2):
    """Codes of columns of these sizes; -1 where missing."""
    X = np.stack([rng.integers(0, r, size=n) for r in sizes], axis=1)
    X[rng.random(X.shape) < missing] = -1
    return X


def hmm_as_net(model, length):
    """Hidden Markov model of sequences of one length: nodes z0, x0, z1, ..."""
    factors = [(("z0",), model.start)]
    for t in range(length):
        factors.append(((f"z{t}", f"x{t}"), model.emission.prob))
        if t:
            factors.append(((f"z{t - 1}", f"z{t}"), model.transition))
    return BayesNet(factors, [f"x{t}" for t in range(length)])


def random_fit(seed, make, fit):
    """Worst relative step of the objective of a fit to rows of a random model.

    `make(rng, sizes, observed)` is the model; `fit(model, X, **options)` the fit.
    """
    rng = np.random.default_rng(seed)
    sizes = {n: int(rng.integers(1, 4)) for n in "abcdef"[: rng.integers(2, 7)]}
    names = [str(n) for n in rng.permutation(list(sizes))]
    model = make(rng, sizes, names[: rng.integers(1, len(sizes) + 1)])
    X = model.sample(int(rng.integers(1, 60)), rng)
    if rng.random() < 0.5:
        X[rng.random(X.shape) < 0.2] = -1
    fitted = fit(
        model, X, observed=model.observed, n_categories=sizes, n_init=1, max_iter=40,
        weights=rng.uniform(0.1, 2.0, len(X)) if rng.random() < 0.3 else None,
        smoothing=float(rng.choice([0.0, 1e-6, 0.01, 1.0])), random_state=rng,
    )  # fmt: skip
    if fitted.fit_result is None:
        return np.inf
    trace = fitted.fit_result.objective_history
    return (np.diff(trace) / (1.0 + np.abs(trace[1:]))).min(initial=np.inf)
