"""Families of distributions and conjugate priors."""

import numpy as np
from invariances import data as kinds
from invariances.subjects.table import FORMULA, subject

from maxent import discrimination as D
from maxent import families
from maxent import families as F


# -- families and conjugate priors -----------------------------------------------------
def family(name, kind, more="weights", **options):
    def fit(data):
        return getattr(families, name).fit(data.X, data.weight, **options)

    def answers(model, query):
        return {"log_density": model.log_prob(query)}

    subject(name, kind, fit, answers, FORMULA, more)


family("Gaussian", kinds.table)
family("DiagonalGaussian", kinds.table)
family("SphericalGaussian", kinds.table)
family("TiedGaussian", kinds.table)
family("Independent", kinds.counts, family=F.Poisson)
family(
    "Product",
    kinds.counts,
    layout=[((0, 2), F.Gaussian, {}), ((1,), F.Independent, {"family": F.Poisson})],
)
family("Exponential", kinds.positive)
family("Gamma", kinds.positive)
for name in ("Poisson", "Geometric"):
    family(name, kinds.whole)
family("NegativeBinomial", kinds.whole, r=3.0)
family("Categorical", kinds.whole)
family("Bernoulli", kinds.truths)
family("Multinomial", kinds.totals)
family("Beta", kinds.unit_interval)
family("Dirichlet", kinds.shares)
family("VonMisesFisher", kinds.directions)
family("Wishart", kinds.matrices)
family("InverseWishart", kinds.matrices)


def conjugate(name, kind, prior, tolerance=FORMULA):
    """A posterior, and what it predicts; the prior may look at the rows."""

    def fit(data):
        return prior(data.X, data.weight).posterior(data.X, data.weight)

    def answers(posterior, query):
        return {"log_density": posterior.predictive_log_prob(query)}

    subject(name, kind, fit, answers, tolerance, "weights")


THREES = [3, 3, 3]
conjugate("NormalInverseWishart", kinds.table, F.NormalInverseWishart.weak)
conjugate(
    "NormalGamma",
    kinds.regressors,
    lambda X, w: F.NormalGamma([0.0, 0.0], np.eye(2), 2.0, 2.0),
)
conjugate("DirichletCounts", kinds.counts, lambda X, w: F.DirichletCounts([1.0] * 3))
conjugate(
    "DirichletProduct", kinds.coded_signs, lambda X, w: F.DirichletProduct(1.0, THREES)
)
conjugate(
    "DirichletBayesNet",
    kinds.coded_signs,
    lambda X, w: F.DirichletBayesNet(1.0, [(), (0,), (0, 1)], THREES),
)
conjugate(
    "DirichletTrees", kinds.coded_signs, lambda X, w: D.DirichletTrees(4.0, THREES)
)
conjugate(
    "SpanningTrees",
    kinds.coded_signs,
    lambda X, w: D.SpanningTrees.fit(X, sample_weight=w),
)
