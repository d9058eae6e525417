"""Model files of LIBSVM, read and evaluated from the format's description alone."""

import itertools

import numpy as np
import pytest
from refusals import refused
from scipy import sparse

import maxent
from maxent import MEDClassifier, MEDOutlierDetector, MEDRegressor
from maxent.discrimination import GaussianCentre, GaussianScores

KERNELS = {
    "linear": lambda x, z, p: x @ z,
    "polynomial": lambda x, z, p: (p["gamma"] * (x @ z) + p["coef0"]) ** p["degree"],
    "rbf": lambda x, z, p: np.exp(-p["gamma"] * ((x - z) ** 2).sum()),
    "sigmoid": lambda x, z, p: np.tanh(p["gamma"] * (x @ z) + p["coef0"]),
}


def read(text, d):
    """Header and support vectors, as the README and svm.cpp of LIBSVM describe them."""
    head, body = text.split("\nSV\n")
    fields = {}
    for line in head.splitlines():
        name, *values = line.split()
        fields[name] = values
    model = {
        k: float(fields[k][0]) for k in ("gamma", "coef0", "degree") if k in fields
    }
    model["type"], model["kernel"] = fields["svm_type"][0], fields["kernel_type"][0]
    for name in ("rho", "probA", "probB"):
        model[name] = [float(x) for x in fields.get(name, [])]
    for name in ("label", "nr_sv"):
        model[name] = [int(x) for x in fields.get(name, [])]
    K = int(fields["nr_class"][0])
    rows, coefs = [], []
    for line in body.splitlines():
        words = line.split()
        x = np.zeros(d)
        last = 0
        for word in words[K - 1 :]:
            index, value = word.split(":")
            assert int(index) > last  # ascending, from 1
            last = int(index)
            x[last - 1] = float(value)
        rows.append(x)
        coefs.append([float(w) for w in words[: K - 1]])
    assert len(rows) == int(fields["total_sv"][0])
    return model, np.array(rows).reshape(-1, d), np.array(coefs).reshape(-1, K - 1)


def decisions(text, X):
    """Decision values of all pairs (n, n_pairs), and labels or values."""
    model, rows, coefs = read(text, X.shape[1])
    k = KERNELS[model["kernel"]]
    values = np.array([[k(x, z, model) for z in rows] for x in X])
    values = values.reshape(len(X), len(rows))
    if model["type"] in ("epsilon_svr", "one_class"):
        f = values @ coefs[:, 0] - model["rho"][0]
        return f[:, None], f if model["type"] == "epsilon_svr" else np.where(
            f > 0, 1, -1
        )
    K = len(model["label"])
    start = np.concatenate([[0], np.cumsum(model["nr_sv"])])
    assert start[-1] == len(rows)
    out, votes = [], np.zeros((len(X), K))
    for p, (i, j) in enumerate(itertools.combinations(range(K), 2)):
        si, sj = slice(start[i], start[i + 1]), slice(start[j], start[j + 1])
        f = values[:, si] @ coefs[si, j - 1] + values[:, sj] @ coefs[sj, i]
        f = f - model["rho"][p]
        votes[np.arange(len(X)), np.where(f > 0, i, j)] += 1
        out.append(f)
    return np.array(out).T, np.array(model["label"])[votes.argmax(axis=1)]


def rows(rng, n=45, d=3):
    return rng.standard_normal((n, d)), rng.standard_normal((30, d))


def close(found, expected):
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=1e-12 * scale, rtol=0)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("labels", [(0, 1), (7, -2), (False, True)])
@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive")
def test_two_classes(kernel, labels, rng):
    X, new = rows(rng)
    y = np.array(labels)[(X[:, 0] * X[:, 1] > 0).astype(int)]
    model = MEDClassifier(kernel, coef0=0.5, gamma=0.3, degree=2).fit(X, y)
    f, label = decisions(maxent.to_libsvm(model), new)
    close(f[:, 0], model.decision_function(new))
    np.testing.assert_array_equal(label, model.predict(new).astype(int))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("K", [3, 5])
def test_pairs_of_classes(kernel, K, rng):
    X, new = rows(rng, 60)
    y = np.arange(60) % K * 10
    X[:, 0] += y / 10
    model = MEDClassifier(kernel, multi_class="ovo", degree=2).fit(X, y)
    f, label = decisions(maxent.to_libsvm(model), new)
    each = {}
    for a, b in itertools.combinations(range(K), 2):  # the kernel sums, by hand
        part = np.isin(y, (10 * a, 10 * b))
        one = MEDClassifier(kernel, degree=2, gamma=model.gamma_, tol=1e-8)
        each[a, b] = one.fit(X[part], y[part]).decision_function(new)
    order = itertools.combinations(range(K - 1, -1, -1), 2)
    expected = np.column_stack([each[b, a] for a, b in order])
    np.testing.assert_allclose(f, expected, atol=0.05)  # another tolerance of the fit
    # votes decide, and equal ones alone may be another class there
    votes = model.decision_function(new)
    top = np.sort(np.rint(votes), axis=1)
    sure = top[:, -1] > top[:, -2]
    assert sure.any()
    np.testing.assert_array_equal(label[sure], model.predict(new)[sure])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pair_scores_to_the_last_digits(kernel, rng):
    X, new = rows(rng, 60)
    y = np.arange(60) % 4
    model = MEDClassifier(kernel, multi_class="ovo").fit(X, y)
    f, _ = decisions(maxent.to_libsvm(model), new)
    total = np.zeros((30, 4))
    sums = np.zeros((30, 4))
    pairs = itertools.combinations([3, 2, 1, 0], 2)
    for column, (a, b) in zip(f.T, pairs, strict=True):
        total[np.arange(30), np.where(column > 0, a, b)] += 1
        sums[:, a] += column
        sums[:, b] -= column
    close(total + sums / (3 * (np.abs(sums) + 1)), model.decision_function(new))


def test_scores_of_a_linear_machine(rng):
    X, new = rows(rng)
    y = np.arange(45) % 3
    X[:, 1] += y
    for model in (
        MEDClassifier("linear", multi_class="joint"),
        maxent.MaxEntClassifier(),
    ):
        model.fit(X, y)
        f, label = decisions(maxent.to_libsvm(model), new)
        s = model.decision_function(new)
        close(
            f,
            np.column_stack([s[:, 2] - s[:, 1], s[:, 2] - s[:, 0], s[:, 1] - s[:, 0]]),
        )
        np.testing.assert_array_equal(label, model.predict(new))
    joint = MEDClassifier(multi_class="joint").fit(X, y)
    refused(lambda: maxent.to_libsvm(joint), "multi_class='ovo'")


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_targets(kernel, rng, tmp_path):
    X, new = rows(rng)
    model = MEDRegressor(kernel, degree=2).fit(X, X[:, 0] - X[:, 1] ** 2)
    text = maxent.to_libsvm(model, tmp_path / "m")
    assert (tmp_path / "m").read_text() == text
    close(decisions(text, new)[1], model.predict(new))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_outliers(kernel, rng):
    X, new = rows(rng)
    model = GaussianScores(kernel, gamma=0.4, degree=2, coef0=1.0)
    detector = MEDOutlierDetector(model, level=1.0, margin="hinge").fit(X)
    f, label = decisions(maxent.to_libsvm(detector), new)
    close(f[:, 0], detector.decision_function(new))
    np.testing.assert_array_equal(label, detector.predict(new))
    other = MEDOutlierDetector(GaussianCentre("rbf"), margin="hinge", level=-0.5).fit(X)
    refused(lambda: maxent.to_libsvm(other), "has no kernel expansion")


def test_probabilities_of_two_classes(rng):
    X, new = rows(rng)
    y = (X[:, 0] > 0).astype(int)
    model = MEDClassifier(margin="logistic").fit(X, y)
    text = maxent.to_libsvm(model)
    fields, _, _ = read(text, 3)
    f = decisions(text, new)[0][:, 0]
    p = 1 / (1 + np.exp(fields["probA"][0] * f + fields["probB"][0]))  # of label[0]
    assert fields["label"] == [1, 0]
    close(p, model.predict_proba(new)[:, 1])


def test_other_rows_and_labels(rng):
    X, new = rows(rng)
    X[np.abs(X) < 0.5] = 0.0
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = MEDClassifier().fit(sparse.csr_array(X), y)
    f, label = decisions(maxent.to_libsvm(model), new)
    close(f[:, 0], model.decision_function(new))
    np.testing.assert_array_equal(model.classes_[label], model.predict(new))
    landmarks = MEDClassifier(approximation="nystroem", n_components=9, random_state=0)
    f, _ = decisions(maxent.to_libsvm(landmarks.fit(X, y)), new)
    close(f[:, 0], landmarks.decision_function(new))


@pytest.mark.parametrize(
    "make, match",
    [
        (
            lambda X, y: MEDClassifier("precomputed").fit(X @ X.T, y),
            "'precomputed'",
        ),
        (lambda X, y: MEDClassifier(lambda a, b: a @ b.T).fit(X, y), "kernel="),
        (lambda X, y: maxent.MEDTreeClassifier(), "MEDTreeClassifier"),
        (lambda X, y: 3, "estimator=3"),
    ],
)
def test_what_is_refused(make, match, rng):
    X, _ = rows(rng)
    model = make(X, np.arange(45) % 2)
    refused(lambda: maxent.to_libsvm(model), match)
