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
    "kernel_dual": ("solve_dual", "solve_kernel_dual", "dual_path"),
    "linear_dual": ("solve_linear_dual",),
    "classifier": ("MEDClassifier",),
    "regressor": ("MEDRegressor",),
    "selection": ("MEDFeatureSelector",),
    "block_dual": ("solve_blocks",),
    "blocks": ("GaussianCentre", "GaussianScores"),
    "outliers": ("MEDOutlierDetector",),
    "generative": ("MEDGaussianClassifier", "MEDBayesNetClassifier"),
    "spanning_trees": (
        "spanning_tree_log_partition",
        "spanning_tree_covariance",
        "sample_spanning_trees",
    ),
    "best_trees": ("max_spanning_tree", "chow_liu_tree"),
    "tree_priors": ("SpanningTrees",),
    "dirichlet_trees": ("DirichletTrees",),
    "largest_margin": ("max_margin",),
    "trees": ("MEDTreeClassifier",),
    "chow_liu": ("ChowLiuClassifier",),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
