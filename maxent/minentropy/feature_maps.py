"""Feature maps of one's own, and hidden states on chains and trees."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from maxent._inputs.sequences import vector_sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.typing import FloatArray, RandomState
from maxent.minentropy._features import HiddenFeatures, JointFeatures
from maxent.minentropy._hidden_chains import TreeFeatures

_FINITE = "make it finite, for instance by imputing missing features of X"


class FeatureMap(Protocol):
    """Features Psi(x, y, h) of one's own, by two operators adjoint to each other.

    Attributes
    ----------
    n_features : int
        Length d of the weights.
    """

    n_features: int

    def hidden_sizes(self, X: Any) -> Any:
        """Return how many hidden values every (i, y) has, ints (n, K)."""

    def scores(self, X: Any, w: FloatArray) -> FloatArray:
        """Return w . Psi of all hidden values, by sample, output, hidden value."""

    def pool(self, X: Any, beta: FloatArray) -> Any:
        """Return sum_h beta_iyh Psi_iyh, dense (n, K, d) or sparse (n K, d)."""


def check_feature_map(
    feature_map: FeatureMap, X: Any, *, random_state: RandomState = 0
) -> None:
    """Check that `scores` is linear and that `pool` is its adjoint.

    ``sum beta s(w) = sum_iy w . pool(beta)_iy`` must hold for all weights; it is tried
    at random ones, for every output of every sample.

    Parameters
    ----------
    feature_map : FeatureMap
        An object with n_features, hidden_sizes, scores and pool.
    X : object
        Data that it takes; a few samples will do.
    random_state : int, Generator, RandomState or None, default=0
        Of the weights.

    Raises
    ------
    ValueError
        If a shape is wrong, the scores are not linear in w, or the two operators are
        not adjoint; the sample and the output are named.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import check_feature_map
    >>> class Pairs:
    ...     n_features = 2
    ...     def hidden_sizes(self, X):
    ...         return np.tile([1, 3], (len(X), 1))
    ...     def rows(self, X):
    ...         return np.insert(X, 0, 0.0, axis=1).reshape(-1, 2)
    ...     def scores(self, X, w):
    ...         return self.rows(X) @ w
    ...     def pool(self, X, beta):
    ...         both = (beta[:, None] * self.rows(X)).reshape(-1, 4, 2)
    ...         return np.stack([both[:, 0], both[:, 1:].sum(axis=1)], axis=1)
    >>> check_feature_map(Pairs(), np.ones((5, 3, 2)))
    """
    rng = as_generator(random_state)
    bound = MappedFeatures(feature_map, X, None)
    d, K = bound.d, bound.K
    first, second = rng.standard_normal((2, d))
    s, t = bound.raw_scores(first), bound.raw_scores(second)
    both = bound.raw_scores(first + second)
    size = np.abs(s) + np.abs(t)
    largest = np.maximum.reduceat(size, bound.offsets[:-1]) if len(s) else size
    largest = np.repeat(largest, np.diff(bound.offsets))
    bent = ~(np.abs(both - s - t) <= 1e-9 * (1e-300 + largest))
    if bent.any():
        i, y = divmod(_segment(bound, bent), K)
        raise ValueError(
            f"feature_map.scores is not linear in w: for sample {i} and output {y} "
            "scores of a + b are not the sums of those of a and of b. Leave out "
            "constants and products of weights."
        )
    beta = rng.standard_normal(len(s))
    G = bound.pool(beta)
    pooled, direct = np.asarray(G @ first).ravel(), np.zeros(bound.n * K)
    scale = np.asarray(abs(G) @ np.abs(first)).ravel()
    if len(s):
        starts = bound.offsets[:-1]
        direct[bound.present] = np.add.reduceat(beta * s, starts)
        scale[bound.present] += np.add.reduceat(np.abs(beta * s), starts)
    wrong = ~(np.abs(pooled - direct) <= 1e-9 * (1e-300 + scale))
    if wrong.any():
        i, y = divmod(int(np.argmax(wrong)), K)
        raise ValueError(
            f"feature_map.pool is not the adjoint of scores: for sample {i} and output "
            f"{y} w . pool(beta) = {pooled[wrong][0]:.6g}, but the sum of beta times "
            f"scores(w) is {direct[wrong][0]:.6g}."
        )


def _segment(bound, wrong):
    """i K + y of the first hidden value that is wrong."""
    return int(np.searchsorted(bound.ptr, int(np.argmax(wrong)), side="right")) - 1


class MappedFeatures(JointFeatures):
    """Hidden values listed by a user's map."""

    def __init__(self, feature_map, X, K):
        missing = [
            name
            for name in ("n_features", "hidden_sizes", "scores", "pool")
            if not hasattr(feature_map, name)
        ]
        if missing:
            raise ValueError(
                f"feature_map={v.shown(feature_map)} has no {', '.join(missing)}; it "
                "must be 'dense', 'ragged', a ChainMap, or an object with n_features, "
                "hidden_sizes, scores and pool."
            )
        self.map, self.X = feature_map, X
        sizes = v.as_array("hidden_sizes", feature_map.hidden_sizes(X))
        if sizes.ndim != 2 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
            raise ValueError(
                f"feature_map.hidden_sizes gave shape {sizes.shape} of dtype "
                f"{sizes.dtype}; integers >= 0 of shape (n, K) are needed."
            )
        _check_outputs(sizes.shape[1], K)
        ptr = np.concatenate([[0], np.cumsum(sizes.ravel())])
        d = v.check_count("n_features", feature_map.n_features)
        super().__init__(sp.csr_array((int(ptr[-1]), d)), ptr, sizes.shape[1])

    def raw_scores(self, w):
        s = v.as_doubles("scores", self.map.scores(self.X, w))
        if s.shape != (self.ptr[-1],):
            raise ValueError(
                f"feature_map.scores gave shape {s.shape}; ({self.ptr[-1]},) is "
                "needed, one number for each hidden value."
            )
        v.check_entries("feature_map.scores(X, w)", s, _FINITE)
        return np.array(s)

    def pool(self, beta):
        G = self.map.pool(self.X, beta)
        shape = (self.n * self.K, self.d)
        if sp.issparse(G) and G.shape == shape:
            G = sp.csr_array(G)
        elif not sp.issparse(G) and np.shape(G) in (shape, (self.n, self.K, self.d)):
            G = np.asarray(G, dtype=np.float64).reshape(shape)
        else:
            raise ValueError(
                f"feature_map.pool gave shape {np.shape(G)}; ({self.n}, {self.K}, "
                f"{self.d}) is needed, or sparse {shape}."
            )
        v.check_entries("feature_map.pool(X, beta)", G, _FINITE)
        return G


class ChainMap:
    """Hidden states on a chain or a tree: the feature map of M3EModel for sequences.

    Every output has weights W of its states and A of its transitions,
    ``s(y, h) = sum_t W_y[h_t] . x_t + sum_t A_y[h_(t-1), h_t]``; the S^T paths are
    summed over by forward and backward recursions, O(T S^2).

    Parameters
    ----------
    n_states : int
        S, hidden states of every node.
    parents : array-like of int (T,), optional
        Parent of every node, below its own number, -1 of a root: a tree in place of
        the chain, the same for all samples.

    Notes
    -----
    Data are a list of arrays (T_i, p) or an array (n, T, p). Weights are, output by
    output, W (S, p) and A (S, S). `predict_hidden` gives the states (T,), -1 beyond the
    end of shorter sequences, and `hidden_proba` the marginals (T_i, S). A symmetric
    start does not tell the states apart: learn with random starts, or name some states
    by the `hidden_mask` of `fit`, one row (S,) of allowed states for every node.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import ChainMap, M3EModel
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((40, 6, 1)), np.arange(40) % 2
    >>> X[y == 1, ::2] += 4.0
    >>> X[y == 0] += 2.0
    >>> model = M3EModel(ChainMap(2), alpha=1.0, C=50.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(self, n_states: int, parents: ArrayLike | None = None) -> None:
        self.n_states = v.check_count("n_states", n_states)
        self.parents = None
        if parents is not None:
            given = v.as_doubles("parents", parents)
            whole = given.ndim == 1 and len(given) and (given == np.floor(given)).all()
            places = np.arange(len(given)) if given.ndim == 1 else given
            if not whole or not ((given >= -1) & (given < places)).all():
                raise ValueError(
                    f"parents={v.shown(given.tolist())} must hold, for every node, "
                    "the number of a node before it, or -1."
                )
            self.parents = given.astype(np.intp)

    def get_spec(self) -> dict[str, Any]:
        """Return the constructor's arguments.

        Returns
        -------
        dict
            Of arrays and numbers, as model files keep them.
        """
        return {"n_states": self.n_states, "parents": self.parents}

    def __repr__(self) -> str:
        tree = "" if self.parents is None else f", parents={self.parents.tolist()}"
        return f"ChainMap({self.n_states}{tree})"

    def bind(self, X: Any, K: int) -> HiddenFeatures:
        """Return the features of data, for K outputs.

        Parameters
        ----------
        X : list of array-like (T_i, p), or array-like (n, T, p)
            Sequences of observations.
        K : int
            Outputs.

        Returns
        -------
        HiddenFeatures
            What the learners take.
        """
        found = list(vector_sequences(list(X)))
        for i, x in enumerate(found):
            if not np.isfinite(x).all():
                raise ValueError(
                    f"X[{i}] has a missing observation; ChainMap needs finite ones."
                )
            if self.parents is not None and len(x) != len(self.parents):
                raise ValueError(
                    f"X[{i}] has {len(x)} nodes and parents {len(self.parents)}; all "
                    "samples of a tree have the same nodes."
                )
        return TreeFeatures(found, self.n_states, self.parents, K)


def bind_map(feature_map: Any, X: Any, K: int | None) -> HiddenFeatures:
    """Features of data under what M3EModel takes as `feature_map`."""
    if isinstance(feature_map, ChainMap):
        return feature_map.bind(X, 2 if K is None else K)
    if not isinstance(feature_map, str):
        return MappedFeatures(feature_map, X, K)
    v.check_choice("feature_map", feature_map, ("dense", "ragged"))
    return _dense(X, K) if feature_map == "dense" else _ragged(X, K)


def take_samples(feature_map: Any, X: Any, index: Any) -> Any:
    """Some samples of X, in the form that `feature_map` takes."""
    if not isinstance(X, tuple) or isinstance(feature_map, ChainMap):
        return _safe_indexing(X, index)
    if feature_map == "dense":
        return tuple(_safe_indexing(part, index) for part in X)
    if feature_map != "ragged":
        raise ValueError(
            "X is a tuple, of which only feature_map knows where a sample is; give it "
            "the data as an array or a list of samples."
        )
    R, sizes = X
    sizes = v.as_array("sizes", sizes)
    ends = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
    rows = [np.arange(lo, hi) for lo, hi in pairwise(ends)]
    kept = np.arange(len(sizes))[index]
    own = np.concatenate([rows[i] for i in kept]) if len(kept) else ends[:0]
    return _safe_indexing(R, own), sizes[kept]


def _dense(X, K):
    psi, mask = X if isinstance(X, tuple) else (X, None)
    psi = v.as_doubles("X", psi)
    if psi.ndim != 4 or not psi.size:
        raise ValueError(
            f"X has shape {psi.shape}; feature_map='dense' takes (n, K, H, d)."
        )
    _check_outputs(psi.shape[1], K)
    n, K, H, d = psi.shape
    if mask is not None:
        mask = v.as_array("mask", mask)
        if mask.shape != (n, K, H) or mask.dtype != bool:
            raise ValueError(
                f"the mask of X has shape {mask.shape} and dtype {mask.dtype}; "
                f"booleans {(n, K, H)} are needed."
            )
        psi = np.where(mask[..., None], psi, 0.0)  # what is left out may be missing
    _check_features("X", psi)
    features = JointFeatures(
        np.ascontiguousarray(psi).reshape(-1, d), H * np.arange(n * K + 1), K
    )
    if mask is not None:
        features.forbidden = np.flatnonzero(~mask.ravel())
    return features


def _ragged(X, K):
    if not isinstance(X, tuple) or len(X) != 2:
        raise ValueError(
            "feature_map='ragged' takes X = (rows, sizes): features (N, d), and how "
            "many rows every sample and output has, (n, K)."
        )
    R, sizes = X
    R = sp.csr_array(R, dtype=np.float64) if sp.issparse(R) else v.as_doubles("rows", R)
    sizes = v.as_array("sizes", sizes)
    if sizes.ndim != 2 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(
            f"sizes has shape {sizes.shape} and dtype {sizes.dtype}; integers >= 0 of "
            "shape (n, K) are needed."
        )
    if R.ndim != 2 or R.shape[0] != sizes.sum():
        raise ValueError(
            f"rows has shape {R.shape} and sizes add up to {sizes.sum()}; one row for "
            "each hidden value is needed."
        )
    _check_outputs(sizes.shape[1], K)
    _check_features("rows", R)
    return JointFeatures(
        R, np.concatenate([[0], np.cumsum(sizes.ravel())]), sizes.shape[1]
    )


def _check_outputs(found, K):
    if K is not None and found != K:
        raise ValueError(
            f"X has features of {found} outputs and {K} are expected, n_outputs or, "
            f"where it is None, the classes of y; set n_outputs={found}, or give "
            f"features of {K} outputs."
        )


def _check_features(name, entries):
    v.check_entries(name, entries, "drop such hidden values, or impute their features")
    v.check_range(name, entries)
