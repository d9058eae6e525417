"""Generative models: blocks, their dual, the estimators, families."""

import numpy as np

from maxent import MEDBayesNetClassifier, MEDGaussianClassifier, MEDOutlierDetector
from maxent.discrimination import ExponentialMargin, solve_blocks
from maxent.families import DirichletProduct, Gaussian, NormalInverseWishart

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
