"""Kernel tiles against plain numpy in double precision, with derived error bounds."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from maxent._core.machines import gram as core

LINEAR, RBF, POLYNOMIAL, SIGMOID = range(4)
SPECS = {
    "linear": (LINEAR, 0.0, 0.0, 0),
    "rbf": (RBF, 0.3, 0.0, 0),
    "rbf-sharp": (RBF, 40.0, 0.0, 0),
    "poly3": (POLYNOMIAL, 0.2, 0.5, 3),
    "poly0": (POLYNOMIAL, 0.2, 0.5, 0),
    "poly7": (POLYNOMIAL, 0.1, -0.3, 7),
    "sigmoid": (SIGMOID, 0.4, -0.2, 0),
}
# around the vector width, the rows and the columns of a tile
EDGES = [1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025]
REAL = [np.float32, np.float64]

named = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
precisions = pytest.mark.parametrize("real", REAL, ids=["single", "double"])


def rows(rng, n, d, real):
    X = rng.normal(size=(n, d)).astype(real)
    return X, np.einsum("ij,ij->i", X, X)


def truth(spec, X, Z):
    """Kernel values by explicit differences, and a bound of their rounding errors."""
    kind, gamma, coef0, degree = spec
    eps = np.finfo(X.dtype).eps
    d = X.shape[1]
    X, Z = X.astype(float), Z.astype(float)
    inner = X @ Z.T
    lengths = np.sqrt((X**2).sum(1))[:, None] * np.sqrt((Z**2).sum(1))[None, :]
    if kind == LINEAR:
        return inner, 2 * (d + 2) * eps * lengths
    if kind == RBF:
        squares = ((X[:, None] - Z[None]) ** 2).sum(axis=-1)
        norms = (X**2).sum(1)[:, None] + (Z**2).sum(1)[None, :]
        K = np.exp(-gamma * squares)
        # squares from norms: absolute error (d + 4) eps (|x|^2 + |z|^2)
        noise = gamma * (d + 4) * eps * norms + 4 * eps * (1 + gamma * squares)
        # below it single precision has zeros; double precision clamps the argument
        floor = 1e-26 if eps > 1e-10 else 4e-308
        return K, K * np.expm1(noise) + floor
    size = gamma * lengths + abs(coef0)
    if kind == POLYNOMIAL:
        bound = (d + 4) * max(degree, 1) * eps * size**degree
        return (gamma * inner + coef0) ** degree, bound
    return np.tanh(gamma * inner + coef0), (d + 4) * eps * size + 8 * eps


def full(spec, X, xx, Z, zz, threads=1):
    out = np.full((len(X), len(Z)), np.nan, dtype=X.dtype)
    core.gram(spec, X, xx, Z, zz, out, threads)
    return out


def symmetric(spec, X, xx, threads=1):
    out = np.full((len(X), len(X)), np.nan, dtype=X.dtype)
    core.gram_symmetric(spec, X, xx, out, threads)
    return out


@named
@precisions
@pytest.mark.parametrize("d", [1, 2, 33])
def test_blocks_are_the_kernel(spec, real, d, rng):
    X, xx = rows(rng, 70, d, real)
    Z, zz = rows(rng, 41, d, real)
    K, bound = truth(spec, X, Z)
    assert (np.abs(full(spec, X, xx, Z, zz) - K) <= bound).all()


@precisions
@pytest.mark.parametrize("d", [1, 127, 128, 129, 300])
def test_inner_products_around_the_edges_of_registers(real, d, rng):
    """Rows in eights, fours and ones; columns in one to three vectors; columns of X in
    one to three parts."""
    Z, zz = rows(rng, 61, d, real)
    for n in [*range(1, 18), 27]:
        X, xx = rows(rng, n, d, real)
        for m in [*range(1, 34), 47, 48, 49, 61]:
            K, bound = truth(SPECS["linear"], X, Z[:m])
            found = full(SPECS["linear"], X, xx, Z[:m], zz[:m])
            assert (np.abs(found - K) <= bound).all(), (n, m)


@precisions
@pytest.mark.parametrize("n", EDGES)
def test_every_size_around_the_edges_of_a_tile(n, real, rng):
    spec = SPECS["rbf"]
    X, xx = rows(rng, n, 3, real)
    Z, zz = rows(rng, 19, 3, real)
    for A, aa, B, bb in ((X, xx, Z, zz), (Z, zz, X, xx)):
        K, bound = truth(spec, A, B)
        assert (np.abs(full(spec, A, aa, B, bb) - K) <= bound).all()
    K, bound = truth(spec, X, X)
    own = symmetric(spec, X, xx)
    assert (np.abs(own - K) <= bound).all()
    assert (own == own.T).all()
    assert (np.diagonal(own) == 1.0).all()


@precisions
def test_arguments_far_out_meet_the_limits_of_the_kernel(real):
    # the exponentials inside would leave the range of their exponent bits
    X = np.array([[1.0]], dtype=real)
    far = np.geomspace(30.0, 1e9, 4000).astype(real)[:, None]
    Z = np.concatenate([far, -far])
    xx, zz = np.square(X[:, 0]), np.square(Z[:, 0])
    tanh = full((SIGMOID, 1.0, 0.0, 0), X, xx, Z, zz)[0]
    assert (tanh[: len(far)] == 1).all()
    assert (tanh[len(far) :] == -1).all()
    K = full((RBF, 1.0, 0.0, 0), X, xx, Z, zz)[0]
    assert (K >= 0).all() and (K <= 2e-38).all()


@named
@precisions
def test_symmetric_is_the_full_block(spec, real, rng):
    X, xx = rows(rng, 300, 5, real)
    _, bound = truth(spec, X, X)
    own = symmetric(spec, X, xx)
    assert (np.abs(own - full(spec, X, xx, X, xx)) <= 2 * bound).all()
    assert (own == own.T).all()


@precisions
def test_padding_is_left_alone(real, rng):
    X, xx = rows(rng, 37, 3, real)
    out = np.full((40, 64), 7.0, dtype=real)
    core.gram_symmetric(SPECS["rbf"], X, xx, out, 1)
    assert (out[37:] == 7).all()
    assert (out[:, 37:] == 7).all()
    assert (out[:37, :37] == symmetric(SPECS["rbf"], X, xx)).all()
    out = np.full((40, 64), 7.0, dtype=real)
    core.gram(SPECS["rbf"], X[:30], xx[:30], X, xx, out, 1)
    assert (out[30:] == 7).all()
    assert (out[:, 37:] == 7).all()


@pytest.mark.parametrize("extra", [0, 1], ids=["aligned", "shifted"])
@pytest.mark.parametrize("width", [2112, 2111])
def test_the_mirror_image_of_a_matrix_that_no_cache_holds(width, extra, rng):
    n, d = 2100, 3  # its last rows are written past the caches, where they are aligned
    X, xx = rows(rng, n, d, np.float32)
    wide = np.full((n + extra, width), 7.0, dtype=np.float32)
    out = wide[extra:, extra:]
    core.gram_symmetric(SPECS["rbf"], X, xx, out, 2)
    np.testing.assert_array_equal(out[:, :n], out[:, :n].T)
    assert (out[:, n:] == 7).all() and (wide[:extra] == 7).all()
    K, bound = truth(SPECS["rbf"], X[-50:], X)
    assert (np.abs(out[-50:, :n] - K) <= bound).all()
    X, xx = X.astype(float), xx.astype(float)
    high = np.full((n + extra, width), 7.0, dtype=np.float32)[extra:, extra:]
    low = np.full(n * (n + 1) // 2, np.nan, dtype=np.float32)
    core.gram_split(SPECS["rbf"], X, xx, high, low, 2)
    np.testing.assert_array_equal(high[:, :n], high[:, :n].T)
    np.testing.assert_allclose(high[:, :n], out[:, :n], rtol=1e-4)
    assert (high[:, n:] == 7).all()


@pytest.mark.parametrize("known", [1, 40, 255, 256, 300, 599, 600])
def test_known_rows_are_kept_and_the_rest_is_added(known, rng):
    X, xx = rows(rng, 600, 3, np.float32)
    K, bound = truth(SPECS["rbf"], X, X)
    out = np.full((600, 608), 7.0, dtype=np.float32)
    core.gram_symmetric(SPECS["rbf"], X, xx, out, 1, known)
    assert (out[:known, :known] == 7).all()
    new = np.ones((600, 600), dtype=bool)
    new[:known, :known] = False
    assert (np.abs(out[:, :600] - K)[new] <= bound[new]).all()


@named
@pytest.mark.parametrize("n", [1, 257, 600])
def test_split_values_hold_forty_eight_bits(spec, n, rng):
    X, xx = rows(rng, n, 3, np.float64)
    high = np.full((n, n + 5), 7.0, dtype=np.float32)
    low = np.full(n * (n + 1) // 2, np.nan, dtype=np.float32)
    core.gram_split(spec, X, xx, high, low, 1)
    K = symmetric(spec, X, xx)
    assert (high[:, n:] == 7).all()
    assert (high[:, :n] == K.astype(np.float32)).all()
    i, j = np.tril_indices(n)
    value = high[i, j].astype(float) + low
    normal = np.abs(K[i, j]) >= 1e-30  # a float has no digits to spare below
    assert (np.abs(value - K[i, j]) <= 2.0**-47 * np.abs(K[i, j]))[normal].all()
    a = rng.normal(size=n)
    out = np.full(n, np.nan)
    core.split_apply(high, low, a, out)
    scale = np.abs(K) @ np.abs(a)
    assert (np.abs(out - K @ a) <= (2.0**-47 + n * 2.0**-52) * scale + 1e-30).all()


@named
@pytest.mark.parametrize("n", [1, 15, 16, 17, 100, 257])
@pytest.mark.parametrize("used", [0, 1, 2, 5, 33, 257])
def test_split_products_of_few_and_of_many_multipliers(spec, n, used, rng):
    X, xx = rows(rng, n, 3, np.float64)
    high = np.full((n + 2, n + 5), np.nan, dtype=np.float32)
    low = np.full(n * (n + 1) // 2, np.nan, dtype=np.float32)
    core.gram_split(spec, X, xx, high, low, 1)
    K = symmetric(spec, X, xx)
    a = np.zeros(n)
    places = rng.permutation(n)[:used]
    a[places] = rng.normal(size=len(places))
    out = np.full(n, np.nan)
    core.split_apply(high, low, a, out)
    scale = np.abs(K) @ np.abs(a)
    assert (np.abs(out - K @ a) <= (2.0**-47 + n * 2.0**-52) * scale + 1e-30).all()


@pytest.mark.parametrize("n", [1023, 1024, 1500])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_split_products_have_the_same_bits_by_any_number_of_threads(n, share, rng):
    X = rng.normal(size=(n, 2))
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    high = K.astype(np.float32)
    i, j = np.tril_indices(n)
    low = (K[i, j] - high[i, j]).astype(np.float32)
    a = np.where(rng.random(n) < share, rng.normal(size=n), 0.0)
    alone, shared = np.empty(n), np.empty(n)
    core.split_apply(high, low, a, alone, 1)
    np.testing.assert_allclose(alone, K @ a, 0.0, 1e-11)
    for threads in (2, 3, 8):
        core.split_apply(high, low, a, shared, threads)
        np.testing.assert_array_equal(shared, alone)


def test_split_products_refuse_sizes_that_do_not_fit():
    high, low = np.zeros((4, 4), dtype=np.float32), np.zeros(10, dtype=np.float32)
    a, out = np.ones(4), np.zeros(4)
    core.split_apply(high, low, a, out)
    core.split_apply(high, low, a[:0], out[:0])
    for bad in (
        (high[:3], low, a, out),
        (high[:, :3], low, a, out),
        (high, low[:9], a, out),
        (high, low, a, out[:3]),
        (high, low, a[:3], out),
        (high[:, ::2], low, a[:2], out[:2]),
    ):
        with pytest.raises(ValueError, match=r"size of a|contiguous"):
            core.split_apply(*bad)


@pytest.mark.parametrize("d", [33, 60, 100, 200])
def test_the_diagonal_of_an_rbf_kernel_is_one_at_the_edges_of_tiles_too(d, rng):
    # far from the origin squared norms and products round differently
    X, xx = rows(rng, 1100, d, np.float64)
    X, xx = 30.0 * X, 900.0 * xx
    n = len(X)
    high = np.empty((n, n), dtype=np.float32)
    low = np.empty(n * (n + 1) // 2, dtype=np.float32)
    core.gram_split(SPECS["rbf"], X, xx, high, low, 1)
    i = np.arange(n)
    assert (np.diagonal(high) == 1).all()
    assert (low[i * (i + 1) // 2 + i] == 0).all()
    assert (np.diagonal(symmetric(SPECS["rbf"], X, xx)) == 1).all()


@named
@precisions
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (257, 1025), (300, 17), (17, 300)])
def test_products_without_the_matrix(spec, real, k, n, m, rng):
    X, xx = rows(rng, n, 4, real)
    Z, zz = rows(rng, m, 4, real)
    A = rng.normal(size=(m, k)).astype(real)
    out = np.full((n, k), np.nan, dtype=real)
    core.kernel_apply(spec, X, xx, Z, zz, A, out, 1)
    K, bound = truth(spec, X, Z)
    size = np.abs(A).astype(float)
    allowed = bound @ size + m * np.finfo(real).eps * (np.abs(K) @ size)
    assert (np.abs(out - K @ A.astype(float)) <= allowed).all()

    own = np.full((m, k), np.nan, dtype=real)
    core.kernel_apply_symmetric(spec, Z, zz, A, own, 1)
    K, bound = truth(spec, Z, Z)
    allowed = bound @ size + m * np.finfo(real).eps * (np.abs(K) @ size)
    assert (np.abs(own - K @ A.astype(float)) <= allowed).all()


@precisions
def test_same_bits_for_any_number_of_threads(real, rng):
    X, xx = rows(rng, 900, 3, real)
    A = rng.normal(size=(900, 2)).astype(real)

    def everything(threads):
        product, own = np.empty_like(A), np.empty_like(A)
        core.kernel_apply(SPECS["rbf"], X, xx, X, xx, A, product, threads)
        core.kernel_apply_symmetric(SPECS["poly3"], X, xx, A, own, threads)
        return (
            symmetric(SPECS["rbf"], X, xx, threads),
            full(SPECS["sigmoid"], X, xx, X[:700], xx[:700], threads),
            product,
            own,
        )

    one = everything(1)
    for threads in (2, 3):
        for a, b in zip(one, everything(threads)):
            assert a.tobytes() == b.tobytes()


def exp_of(t, real):
    """exp(-t) as the RBF row computes it: a zero inner product, squared norm t."""
    t = np.asarray(t, dtype=real)
    zero = np.zeros((1, 1), dtype=real)
    out = np.empty((len(t), 1), dtype=real)
    X = np.zeros((len(t), 1), dtype=real)
    core.gram((RBF, 1.0, 0.0, 0), X, t, zero, np.zeros(1, dtype=real), out, 1)
    return out[:, 0].astype(float)


def test_single_precision_exponential_over_its_range(rng):
    t = np.concatenate([[0.0, 1e-45, 1e-30, 1e-8], rng.uniform(0, 59.9, 50_000)])
    t = t.astype(np.float32)
    true = np.exp(-t.astype(float))
    assert np.abs(exp_of(t, np.float32) / true - 1).max() <= 1.6e-7


def test_double_precision_exponential_over_its_range(rng):
    t = np.concatenate([[0.0, 5e-324, 1e-30, 1e-17], rng.uniform(0, 708, 50_000)])
    # t = k log 2 + r loses k * eps relative digits of r at most
    assert np.abs(exp_of(t, np.float64) / np.exp(-t) - 1).max() <= 1e-15


def test_far_left_the_double_exponential_is_tiny_and_positive():
    t = np.array([708.0, 708.5, 728.0, 7080.0, 1e30, np.finfo(float).max, np.inf])
    value = exp_of(t, np.float64)
    assert (value > 0).all()
    assert (value <= 3.4e-308).all()
    assert (np.diff(value) <= 0).all()


def test_far_left_the_single_exponential_is_zero():
    # products of smaller values with steps would be subnormal, and slow
    t = np.array([60.1, 87.0, 87.5, 107.0, 1e30, np.finfo(np.float32).max, np.inf])
    assert (exp_of(t, np.float32) == 0).all()


@precisions
def test_hyperbolic_tangent_over_its_range(real):
    a = np.concatenate([np.linspace(-30, 30, 5001), [-1e30, -89.0, 89.0, 1e30, 0.0]])
    a = a.astype(real)
    one = np.ones((1, 1), dtype=real)
    out = np.empty((len(a), 1), dtype=real)
    core.gram(
        (SIGMOID, 1.0, 0.0, 0), a[:, None], a, one, np.ones(1, dtype=real), out, 1
    )
    error = np.abs(out[:, 0].astype(float) - np.tanh(a.astype(float)))
    assert error.max() <= 6 * np.finfo(real).eps


@precisions
def test_extreme_gamma(real, rng):
    X, xx = rows(rng, 50, 3, real)
    assert (symmetric((RBF, 0.0, 0.0, 0), X, xx) == 1).all()
    K = symmetric((RBF, 1e20, 0.0, 0), X, xx)
    assert (np.diagonal(K) == 1).all()
    assert (K[~np.eye(50, dtype=bool)] <= 2e-38).all()


def test_clamped_distances_never_exceed_one(rng):
    # equal rows far from the origin: norms minus products round below zero
    X = np.repeat(rng.normal(size=(5, 3)) + 1e4, 8, axis=0)
    for real in REAL:
        Y = X.astype(real)
        norms = np.einsum("ij,ij->i", Y, Y)
        for K in (
            full(SPECS["rbf"], Y, norms, Y, norms),
            symmetric(SPECS["rbf"], Y, norms),
        ):
            assert (K <= 1).all()
            assert (K > 0).all()


@precisions
@pytest.mark.parametrize("kind", ["linear", "poly3", "sigmoid"])
def test_nan_and_overflow_pass_through(kind, real):
    X = np.array([[np.nan], [1.0]], dtype=real)
    K = full(SPECS[kind], X, X[:, 0] ** 2, X[1:], X[1:, 0] ** 2)
    assert np.isnan(K[0, 0])
    assert np.isfinite(K[1, 0])


@precisions
def test_nan_and_overflow_pass_through_the_rbf_kernel(real):
    one = np.ones((1, 1), dtype=real)
    for bad in (np.nan, np.inf, np.finfo(real).max):
        X = np.full((1, 1), bad, dtype=real)
        with np.errstate(over="ignore"):
            norms = X[:, 0] ** 2
        value = full(SPECS["rbf"], X, norms, one, one[0])[0, 0]
        assert np.isnan(value) or value <= 2e-38


@precisions
def test_no_rows_and_no_columns(real):
    nothing = np.empty((0, 3), dtype=real)
    none = np.empty(0, dtype=real)
    some = np.ones((4, 3), dtype=real)
    four = np.full(4, 3.0, dtype=real)
    for spec in SPECS.values():
        full(spec, nothing, none, some, four)
        full(spec, some, four, nothing, none)
        symmetric(spec, nothing, none)
        out = np.full((4, 2), np.nan, dtype=real)
        core.kernel_apply(
            spec, some, four, nothing, none, np.empty((0, 2), real), out, 1
        )
        assert (out == 0).all()
        empty = np.empty((0, 2), dtype=real)
        core.kernel_apply_symmetric(spec, nothing, none, empty, empty.copy(), 1)
