"""What ``maxent fit --estimator`` trains.  Imports nothing heavy, for help texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    *("BASELINES", "CATEGORICAL_MODELS", "KERNEL", "MIXTURE", "SCORINGS", "SEQUENCES"),
    *("TABLES", "Spec"),
]


@dataclass(frozen=True)
class Spec:
    """An estimator of the command line.

    Attributes
    ----------
    class_name : str
        Its key in the registry of model files.
    text : str
        For the list of estimators in the documentation and in messages.
    labels : {"classes", "numbers", "partly", None}
        What labels it needs.
    categories : bool
        Whether features are categories, of numbers or text, that may be missing.
    drop : {"first", None}
        Of scikit-learn's OneHotEncoder, for columns of text: densities need columns
        that do not add up to one.
    foreign : tuple of str
        Parameters that mean something else than the option of their name.
    defaults : mapping of str to object
        Parameters whose default here is another than that of the class.
    """

    class_name: str
    text: str
    labels: str | None = "classes"
    categories: bool = False
    drop: str | None = None
    foreign: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


_LANDMARKS = ("n_components",)  # of an approximation; the option is of mixtures

TABLES = {
    "classifier": Spec("MEDClassifier", "kernel machine", foreign=_LANDMARKS),
    "regressor": Spec(
        "MEDRegressor", "kernel machine for numbers", "numbers", foreign=_LANDMARKS
    ),
    "selector": Spec("MEDFeatureSelector", "linear machine that selects features"),
    "regression_selector": Spec(
        *("MEDRegressionSelector", "linear machine for numbers that selects features"),
        "numbers",
    ),
    "gaussian": Spec("MEDGaussianClassifier", "Gaussian classes", drop="first"),
    "bayesnet": Spec(
        "MEDBayesNetClassifier", "Bayes nets of categories", "classes", True
    ),
    "tree": Spec("MEDTreeClassifier", "random trees of categories", "classes", True),
    "chowliu": Spec("ChowLiuClassifier", "best trees of categories", "classes", True),
    "logistic": Spec("MaxEntClassifier", "multinomial logistic regression"),
    "partial": Spec("MEDPartialLabelClassifier", "labels partly missing", "partly"),
    "outliers": Spec("MEDOutlierDetector", "outliers, no labels", None, drop="first"),
    "mixture": Spec(
        "LMEGaussianMixture", "Gaussian mixture, no labels", None, drop="first"
    ),
    "dirichlet": Spec("LMEDirichletMixture", "mixture of shares, no labels", None),
    "boltzmann": Spec(
        "LMEBoltzmannMachine", "binary columns, no labels", None, foreign=("bias",)
    ),
    "rbm": Spec("LMERBM", "binary columns, no labels", None),
}

# Its tolerance is that of its rounds: --tol is of the detector.
MIXTURE = Spec("LatentMixture", "mixture inside outliers", None, foreign=("tol",))
KERNEL = Spec(
    *("ProductKernel", "kernel between models of sequences"), foreign=("outlier_model",)
)
SEQUENCES = {
    "classifier": Spec(
        *("MEDClassifier", "kernel between models of the sequences"),
        foreign=(*_LANDMARKS, "gamma", "degree", "coef0"),
    ),
    "motif": Spec(
        *("M3EMotifClassifier", "a motif somewhere in the sequence"),
        # On planted motifs (24 to 200 letters, 6 to 12 of them the motif, 24 problems)
        # as good as the defaults of the class, in a sixth of the time.
        defaults={"alpha": 8.0, "C": 80.0, "init": "path"},
    ),
    "outliers": Spec(
        *("MEDSequenceOutlierDetector", "outliers, no labels", None),
        foreign=("covariance_type",),
    ),
}

# Estimators of scikit-learn that ``maxent compare`` tries beside ours, by name: class
# of classifiers and of regressors with their parameters, and whether they need scales.
BASELINES: dict[str, Any] = {
    "constant": (
        ("sklearn.dummy:DummyClassifier", {"strategy": "prior"}),
        ("sklearn.dummy:DummyRegressor", {}),
        False,
    ),
    "linear": (
        ("sklearn.linear_model:LogisticRegression", {"max_iter": 1000}),
        ("sklearn.linear_model:Ridge", {}),
        True,
    ),
    "svm": (("sklearn.svm:SVC", {}), ("sklearn.svm:SVR", {}), True),
    "forest": (
        ("sklearn.ensemble:RandomForestClassifier", {}),
        ("sklearn.ensemble:RandomForestRegressor", {}),
        False,
    ),
}
# Names of scikit-learn's scorers; of one that falls as predictions get better it has
# the negative.
SCORINGS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
    "roc_auc": "roc_auc",
    "log_loss": "neg_log_loss",
    "rmse": "neg_root_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "r2": "r2",
}

CATEGORICAL_MODELS = ("multinomial", "tree")  # of the outlier detector
