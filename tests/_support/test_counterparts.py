"""Arguments of scikit-learn's machines: each has a counterpart on a page."""

import inspect
import pathlib
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, OneClassSVM

import maxent
from maxent._support.counterparts import ATTRIBUTES, COUNTERPARTS, WORDS

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "from_svm.rst"
PEERS = [
    (SVC, maxent.MEDClassifier),
    (SVR, maxent.MEDRegressor),
    (OneClassSVM, maxent.MEDOutlierDetector),
    (LogisticRegression, maxent.MaxEntClassifier),
]
OTHER_VERSIONS = {
    "multi_class",
    "probA_",
    "probB_",
    "probability",
    "penalty",
    "l1_ratio",
}
CLASSES = {
    "MEDClassifierCV": maxent.MEDClassifierCV,
    "MEDRegressorCV": maxent.MEDRegressorCV,
    "MEDFeatureSelector": maxent.MEDFeatureSelector,
    "MEDRegressionSelector": maxent.MEDRegressionSelector,
    **{ours.__name__: ours for _, ours in PEERS},
}


def rows_of(peer, ours):
    """Names of a table of the page: what stands beside each."""
    text = PAGE.read_text(encoding="utf-8")
    head = f"   * - ``{peer.__name__}``\n     - ``{ours.__name__}``\n"
    table = text.split(head)[1].split("\n\n")[0]
    cells = re.findall(r"^   \* - ``(\w+)``\n((?:     .*\n?)+)", table, re.MULTILINE)
    return {name: " ".join(cell.split())[2:] for name, cell in cells}


def attributes_of(peer):
    text = inspect.getdoc(peer)
    part = text.split("Attributes\n")[1].split("See Also")[0]
    return set(re.findall(r"^(\w+) : ", part, re.MULTILINE))


@pytest.mark.skipif(not PAGE.exists(), reason="the docs folder is not there")
@pytest.mark.parametrize("peer, ours", PEERS)
def test_the_page_has_every_argument_and_attribute(peer, ours):
    rows = rows_of(peer, ours)
    theirs = set(inspect.signature(peer).parameters) | attributes_of(peer)
    assert theirs <= set(rows)
    assert set(rows) - theirs <= OTHER_VERSIONS


@pytest.mark.skipif(not PAGE.exists(), reason="the docs folder is not there")
@pytest.mark.parametrize("peer, ours", PEERS)
def test_the_page_says_what_the_constructor_does(peer, ours):
    has = set(inspect.signature(ours).parameters)
    for name, cell in rows_of(peer, ours).items():
        if name.endswith("_"):
            continue
        assert cell.startswith("the same") == (name in has), (name, cell)
        if name not in has:
            assert cell.startswith("none")
            with pytest.raises(TypeError, match=f"{ours.__name__} has no .*{name!r}; "):
                ours(**{name: None})
            with pytest.raises(ValueError, match=f"has no parameter {name!r}; "):
                ours().set_params(**{name: None})


@pytest.mark.skipif(not PAGE.exists(), reason="the docs folder is not there")
@pytest.mark.parametrize("peer, ours", PEERS)
def test_the_page_says_which_attributes_there_are(peer, ours, rng):
    X = rng.standard_normal((40, 3))
    y = np.arange(40) % 3 if peer in (SVC, LogisticRegression) else X[:, 0]
    options = {"kernel": "linear"} if peer in (SVC, SVR) else {}
    model = ours(**options).fit(X, y)
    for name, cell in rows_of(peer, ours).items():
        if name.endswith("_") and name != "feature_names_in_":
            assert hasattr(model, name) == cell.startswith("the same"), name
            if cell.startswith("``"):
                assert hasattr(model, cell.strip("`"))


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_remedies_are_of_arguments_that_are_missing(name):
    cls = CLASSES[name]
    own = set(inspect.signature(cls).parameters)
    for argument, remedy in COUNTERPARTS[name].items():
        if argument in own:
            continue  # a table of several classes
        for called in re.findall(
            r"\b(MED\w+|dual_path|solve_\w+|GaussianScores)", remedy
        ):
            assert hasattr(maxent, called) or hasattr(maxent.discrimination, called)
        for parameter in re.findall(r"(?<!\w)(margin|bias|solver|level|contamination)=",
                                    remedy):  # fmt: skip
            assert parameter in own or "MED" in remedy
        with pytest.raises(TypeError, match=f"{argument!r}; "):
            cls(**{argument: 1})


@pytest.mark.parametrize("name", WORDS)
def test_words_of_peers_are_refused_with_the_word_here(name):
    cls = maxent.MEDOutlierDetector if name == "model" else maxent.MEDClassifier
    for word, remedy in WORDS[name].items():
        with pytest.raises(ValueError) as caught:
            cls(**{name: word}).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
        assert remedy[1:] in str(caught.value)


def test_other_arguments_and_subclasses_are_not_touched():
    with pytest.raises(TypeError, match="unexpected keyword argument 'spam'"):
        maxent.MEDClassifier(spam=1)

    class Own(maxent.MEDClassifier):
        def __init__(self, nu=0.5, C=1.0):
            super().__init__(C=C)
            self.nu = nu

    assert Own(nu=0.1).set_params(nu=0.2).nu == 0.2
    with pytest.raises(TypeError, match="Own has no parameter 'shrinking'"):
        Own(shrinking=True)
    model = maxent.MEDClassifier(C=3.0)
    assert clone(model).C == pickle.loads(pickle.dumps(model)).C == 3.0


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_fitted_attributes_of_peers_are_named_here(name):
    model = maxent.MEDClassifier()
    with pytest.raises(AttributeError, match="it is not fitted"):
        getattr(model, name)
    model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    with pytest.raises(AttributeError) as caught:
        getattr(model, name)
    assert ATTRIBUTES[name] in str(caught.value)
    with pytest.raises(AttributeError, match="no fit has set it"):
        model.spam_  # noqa: B018
