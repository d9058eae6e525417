"""ONNX graphs, run by ONNX's own evaluator and by onnxruntime."""

import sys

import numpy as np
import pytest
from refusals import refused
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxent
from maxent import MaxEntClassifier, MEDClassifier, MEDOutlierDetector, MEDRegressor
from maxent.discrimination import GaussianScores

pytest.importorskip("onnx")


def run(graph, X, runtime):
    if runtime == "reference":
        evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(graph)
    else:
        module = pytest.importorskip("onnxruntime")
        evaluator = module.InferenceSession(
            graph.SerializeToString(), providers=["CPUExecutionProvider"]
        )
    return evaluator.run(None, {"X": X})


def rows(rng, K=2, n=48):
    X = rng.standard_normal((n, 3))
    y = np.arange(n) % K
    X[:, 0] += y
    return X, y, 100.0 + rng.standard_normal((20, 3))


def classifiers():
    for kernel in ("linear", "rbf", "poly", "sigmoid"):
        yield MEDClassifier(kernel, gamma=0.2, coef0=0.3, degree=2), 2
    yield MEDClassifier(margin="logistic"), 2
    yield MEDClassifier("linear", margin="logistic"), 3
    yield MEDClassifier(multi_class="ovo"), 4
    yield MEDClassifier("linear", multi_class="ovo"), 4
    yield MEDClassifier(multi_class="joint"), 4
    yield MaxEntClassifier(), 2
    yield MaxEntClassifier(), 3
    yield maxent.MEDFeatureSelector(margin="logistic"), 2


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
@pytest.mark.parametrize("labels", ["abcd", [3, 1, 7, 5], [0.5, 1.0, 2.0, 4.0]])
@pytest.mark.parametrize("model, K", list(classifiers()))
@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive")
@pytest.mark.filterwarnings("ignore:Unknown label type")
def test_classifiers(model, K, labels, runtime, rng):
    X, y, _ = rows(rng, K)
    labels = np.array(list(labels))
    if labels.dtype.kind == "f":
        labels = np.rint(2 * labels)  # whole floats are labels
    model.fit(X, labels[y])
    graph = maxent.to_onnx(model)
    new = rng.standard_normal((20, 3)) * 2
    found, scores = run(graph, new, runtime)
    np.testing.assert_array_equal(found, model.predict(new))
    has = hasattr(model, "predict_proba")
    assert [o.name for o in graph.graph.output] == [
        "label",
        "probabilities" if has else "decision",
    ]
    expected = model.predict_proba(new) if has else model.decision_function(new)
    assert scores.dtype == np.float64 and scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, atol=1e-11 * (1 + abs(expected).max()))


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_regressors(kernel, runtime, rng, tmp_path):
    X, _, new = rows(rng)
    far = 100.0 if kernel == "rbf" else 0.0  # where distances lose no digits
    model = MEDRegressor(kernel, degree=2).fit(X + far, X[:, 0] ** 2)
    new = new - 100.0 + far
    graph = maxent.to_onnx(model, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == graph.SerializeToString()
    (found,) = run(graph, new, runtime)
    expected = model.predict(new)
    np.testing.assert_allclose(
        found[:, 0], expected, atol=1e-9 * (1 + abs(expected).max())
    )


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_outliers(runtime, rng):
    X, _, _ = rows(rng)
    model = GaussianScores("rbf", gamma=0.4)
    detector = MEDOutlierDetector(model, level=1.0, margin="hinge").fit(X)
    new = 2 * rng.standard_normal((20, 3))
    label, scores = run(maxent.to_onnx(detector), new, runtime)
    np.testing.assert_array_equal(label, detector.predict(new))
    np.testing.assert_allclose(scores, detector.decision_function(new), atol=1e-12)


def test_single_precision_loses_the_rounding_of_the_input_alone(rng):
    X, y, new = rows(rng)
    model = MEDClassifier(gamma=0.3).fit(X + 100, y)
    new = new.astype(np.float32)
    _, scores = run(maxent.to_onnx(model, dtype="float32"), new, "onnxruntime")
    assert scores.dtype == np.float32
    exact = model.decision_function(new.astype(np.float64))
    np.testing.assert_allclose(scores, exact, atol=1e-6 * (1 + abs(exact).max()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "last, K",
    [(MEDClassifier(), 2), (MaxEntClassifier(), 3), (MEDClassifier(), 3)],
)
def test_pipelines(last, K, dtype, rng):
    pytest.importorskip("skl2onnx")
    X, y, _ = rows(rng, K)
    first = []
    if dtype == "float32":  # the only type of onnxruntime's imputer
        X[3, 1] = np.nan
        first = [SimpleImputer()]
    pipe = make_pipeline(*first, StandardScaler(), last)
    pipe.fit(X, np.array(list("abc"))[y])
    label, scores = run(
        maxent.to_onnx(pipe, dtype=dtype), X.astype(dtype), "onnxruntime"
    )
    has = hasattr(pipe, "predict_proba")
    expected = pipe.predict_proba(X) if has else pipe.decision_function(X)
    np.testing.assert_allclose(
        scores, expected, atol=2e-5 if dtype == "float32" else 1e-10
    )
    if dtype == "float64":
        np.testing.assert_array_equal(label, pipe.predict(X))


def test_pipelines_of_regressors(rng):
    pytest.importorskip("skl2onnx")
    X, _, _ = rows(rng)
    pipe = make_pipeline(StandardScaler(), MEDRegressor()).fit(X, X[:, 0])
    (found,) = run(maxent.to_onnx(pipe), X, "onnxruntime")
    np.testing.assert_allclose(found[:, 0], pipe.predict(X), atol=1e-10)


def test_registered_converters_take_columns_of_several_types(rng):
    skl2onnx = pytest.importorskip("skl2onnx")
    pd = pytest.importorskip("pandas")
    runtime = pytest.importorskip("onnxruntime")
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    X, y, _ = rows(rng)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": rng.choice(["u", "w"], 48)})
    columns = [("n", StandardScaler(), ["a", "b"]), ("c", OneHotEncoder(), ["c"])]
    pipe = make_pipeline(ColumnTransformer(columns), MEDClassifier("linear")).fit(
        frame, y
    )
    maxent.register_onnx_converters()
    graph = skl2onnx.to_onnx(
        pipe, frame[:1], target_opset=17, options={"zipmap": False}
    )
    session = runtime.InferenceSession(graph.SerializeToString())
    feed = {name: frame[[name]].to_numpy() for name in frame}
    label, _ = session.run(None, feed)
    np.testing.assert_array_equal(label, pipe.predict(frame))


def test_what_is_refused(rng, monkeypatch):
    X, y, _ = rows(rng)
    model = MEDClassifier().fit(X, y)
    refused(lambda: maxent.to_onnx(model, dtype="int8"), "dtype='int8'")
    tree = maxent.MEDTreeClassifier()
    refused(lambda: maxent.to_onnx(tree), "no kernel expansion")
    monkeypatch.setitem(sys.modules, "onnx", None)  # as if it were not installed
    with pytest.raises(ImportError, match="pip install onnx"):
        maxent.to_onnx(model)
