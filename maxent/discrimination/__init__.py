"""Maximum entropy discrimination: margins met in expectation, with a certificate."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

_HOMES = {
    "margins": (
        "MarginPrior",
        "ExponentialMargin",
        "ErlangMargin",
        "LaplaceMargin",
        "GaussianMargin",
        "LogisticMargin",
        "FixedMargin",
        "HingeMargin",
        "UniformExponentialMargin",
        "CustomMargin",
        "margin_from_spec",
    ),
    "duals.kernel_dual": ("solve_dual", "solve_kernel_dual", "dual_path"),
    "duals.linear_dual": ("solve_linear_dual",),
    "classifier": ("MEDClassifier",),
    "regressor": ("MEDRegressor",),
    "selection": ("MEDFeatureSelector",),
    "duals.block_dual": ("solve_blocks",),
    "kernel_blocks": ("GaussianCentre", "GaussianScores"),
    "outliers": ("MEDOutlierDetector",),
    "generative": ("MEDGaussianClassifier", "MEDBayesNetClassifier"),
    "maxent.models.trees.partition": (
        "spanning_tree_log_partition",
        "spanning_tree_covariance",
        "sample_spanning_trees",
    ),
    "maxent.models.trees.chow_liu": ("max_spanning_tree", "chow_liu_tree"),
    "maxent.models.trees.spanning_trees": ("SpanningTrees",),
    "maxent.models.trees.dirichlet_trees": ("DirichletTrees",),
    "duals.max_margin": ("MaxMargin", "max_margin"),
    "maxent._support.results": ("DualResult", "Status"),
    "trees": ("MEDTreeClassifier",),
    "chow_liu": ("ChowLiuClassifier",),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
