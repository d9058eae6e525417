"""Generative models: blocks, their dual, the estimators, families."""

import numpy as np

from maxent import (
    MEDBayesNetClassifier,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDSequenceOutlierDetector,
)
from maxent.discrimination import ExponentialMargin, LatentMixture, solve_blocks
from maxent.families import DirichletProduct, Gaussian, NormalInverseWishart
from maxent.models import CategoricalHMM

from .common import Fitted, Measured, profile
from .data import gaussian_classes, letters, signs


class GaussianClassifier(Fitted):
    """Two classes; 80 x 5 is the size of the crabs."""

    params = (profile([(80, 5), (1000, 10)], [(20000, 10)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        self.X, self.y, self.X_test, self.y_test = gaussian_classes(*size)

    def estimator(self):
        return MEDGaussianClassifier()


class BayesNetClassifier(Fitted):
    """Naive Bayes, and a chain of features."""

    params = (profile([(1000, 25)], [(10000, 25)]), ["naive", "chain"])
    param_names = ("rows, columns", "net")

    def data(self, size, net):
        self.X, self.y, self.X_test, self.y_test = letters(*size)
        chain = [(), *((k,) for k in range(size[1] - 1))]
        self.parents = None if net == "naive" else chain

    def estimator(self):
        return MEDBayesNetClassifier(self.parents, ess=4.0)


class OutlierDetector(Fitted):
    """Rows of one class only; 7000 x 25 letters is the size of the splice sites."""

    params = (
        profile(
            [("multinomial", 7000, 25), ("gaussian", 2000, 10)],
            [("multinomial", 70000, 25), ("gaussian", 20000, 10)],
        ),
    )
    param_names = ("model, rows, columns",)

    def data(self, case):
        self.model, n, columns = case
        make = letters if self.model == "multinomial" else gaussian_classes
        X, y, self.X_test, self.y_test = make(2 * n, columns)
        self.X, self.y = X[y == 1][:n], None

    def estimator(self):
        return MEDOutlierDetector(self.model, quantile=0.2)

    def track_score(self, case):
        """Area under the ROC curve on the test rows."""
        from sklearn.metrics import roc_auc_score

        scores = self.fitted.score_samples(self.X_test)
        return float(roc_auc_score(self.y_test, scores))


class LatentOutlierDetector(Fitted):
    """Mixtures; 7000 x 25 letters is the size of the splice sites."""

    params = (
        profile(
            [("multinomial", 1000, 25), ("gaussian", 1000, 5)],
            [("multinomial", 7000, 25), ("gaussian", 20000, 10)],
        ),
    )
    param_names = ("component, rows, columns",)

    def data(self, case):
        self.component, n, columns = case
        make = letters if self.component == "multinomial" else gaussian_classes
        self.X, _, self.X_test, _ = make(n, columns)
        self.y = None

    def estimator(self):
        model = LatentMixture(self.component, 2, n_init=2, random_state=0, tol=1e-4)
        return MEDOutlierDetector(model, quantile=0.2)

    def track_score(self, *params):
        """Mean score of the test rows."""
        return float(self.fitted.score_samples(self.X_test).mean())

    track_score.unit = "nats"


class SequenceOutlierDetector(Fitted):
    """Sequences of 50 letters out of 20, 5 states."""

    params = (profile([1000], [10000]),)
    param_names = ("sequences",)

    def data(self, n):
        rng = np.random.default_rng(0)
        model = CategoricalHMM(
            rng.dirichlet(np.ones(5)),
            0.8 * np.eye(5) + 0.2 * rng.dirichlet(np.ones(5), size=5),
            rng.dirichlet(0.3 * np.ones(20), size=5),
        )
        self.X, self.X_test = model.sample(n, 50, 0), model.sample(1000, 50, 1)
        self.y = None

    def estimator(self):
        options = {"n_symbols": 20, "n_init": 3, "random_state": 0}
        return MEDSequenceOutlierDetector(5, **options)

    def track_score(self, *params):
        """Mean score of the test rows."""
        return float(self.fitted.score_samples(self.X_test).mean())

    track_score.unit = "nats"


class BlockDual(Measured):
    """solve_blocks on two Gaussian blocks, arrays in, arrays out."""

    params = (profile([(200, 5), (2000, 10)], [(20000, 10)]),)
    param_names = ("rows, columns",)

    def data(self, size):
        X, y, *_ = gaussian_classes(*size, test=10)
        prior = NormalInverseWishart.improper(size[1])
        self.blocks = [prior.block(X, y == 1), prior.block(X, y == 0)]
        self.y = signs(y)

    def work(self, tol=1e-8):
        from scipy.sparse import diags_array

        maps = [diags_array(self.y), diags_array(-self.y)]
        margin = ExponentialMargin(3.0, 2.0)
        return solve_blocks(
            self.blocks, maps, margin, bias="flat", incidence=self.y, tol=tol
        )

    def objective(self, result):
        return result.objective


class BlockPasses(Measured):
    """One value, gradient and factor of the Hessian of a block."""

    params = (
        ["gaussian", "multinomial"],
        profile([20000], [200000]),
    )
    param_names = ("block", "rows")

    def data(self, kind, n):
        if kind == "gaussian":
            X, *_ = gaussian_classes(n, 10, test=10)
            prior = NormalInverseWishart.weak(X)
        else:
            X, *_ = letters(n, 25, test=10)
            prior = DirichletProduct(1.0, [4] * 25)
        self.block = prior.block(X)
        self.weights = np.random.default_rng(0).random((4, n))

    def work(self, tol=None):
        return sum(
            self.block.log_partition(a)
            + float(self.block.mean(a).sum())
            + float((self.block.hessian_factor(a) ** 2).sum())
            for a in self.weights
        )

    def objective(self, result):
        return result


class GaussianBatch(Measured):
    """Fits, log-densities and affinities of a batch of Gaussians."""

    params = (profile([(100, 50, 5)], [(500, 100, 10)]),)
    param_names = ("batch, rows, columns",)

    def data(self, size):
        self.X = np.random.default_rng(0).normal(size=size)

    def work(self, tol=None):
        P = Gaussian.fit(self.X, smoothing=0.1)
        return P.log_prob(self.X).sum(), P.log_affinity(P, 0.5).sum()

    def objective(self, result):
        return float(sum(result))
