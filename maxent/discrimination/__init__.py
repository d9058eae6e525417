"""Maximum entropy discrimination: margins met in expectation, with a certificate."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
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
        "QuadratureMargin",
        "margin_from_spec",
    ),
    "duals.kernel_dual": ("solve_dual", "solve_kernel_dual", "dual_path"),
    "duals.linear_dual": ("solve_linear_dual",),
    "classifier": ("MEDClassifier",),
    "regressor": ("MEDRegressor",),
    "search": ("MEDClassifierCV", "MEDRegressorCV"),
    "selection": ("MEDFeatureSelector",),
    "regression_selection": ("MEDRegressionSelector",),
    "duals.block_dual": ("solve_blocks",),
    "kernel_blocks": ("GaussianCentre", "GaussianScores"),
    "detection.latent_mixture": ("LatentMixture", "MixturePosterior"),
    "detection.outliers": ("MEDOutlierDetector",),
    "detection.sequence_outliers": ("MEDSequenceOutlierDetector",),
    "detection.chain_posterior": ("ChainPosterior",),
    "labels.partial_labels": ("MEDPartialLabelClassifier",),
    "generative_columns": ("MEDGenerativeClassifier",),
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

if TYPE_CHECKING:
    from maxent._support.results import (
        DualResult as DualResult,
        Status as Status,
    )
    from maxent.discrimination.chow_liu import ChowLiuClassifier as ChowLiuClassifier
    from maxent.discrimination.classifier import MEDClassifier as MEDClassifier
    from maxent.discrimination.detection.chain_posterior import (
        ChainPosterior as ChainPosterior,
    )
    from maxent.discrimination.detection.latent_mixture import (
        LatentMixture as LatentMixture,
        MixturePosterior as MixturePosterior,
    )
    from maxent.discrimination.detection.outliers import (
        MEDOutlierDetector as MEDOutlierDetector,
    )
    from maxent.discrimination.detection.sequence_outliers import (
        MEDSequenceOutlierDetector as MEDSequenceOutlierDetector,
    )
    from maxent.discrimination.duals.block_dual import solve_blocks as solve_blocks
    from maxent.discrimination.duals.kernel_dual import (
        dual_path as dual_path,
        solve_dual as solve_dual,
        solve_kernel_dual as solve_kernel_dual,
    )
    from maxent.discrimination.duals.linear_dual import (
        solve_linear_dual as solve_linear_dual,
    )
    from maxent.discrimination.duals.max_margin import (
        MaxMargin as MaxMargin,
        max_margin as max_margin,
    )
    from maxent.discrimination.generative import (
        MEDBayesNetClassifier as MEDBayesNetClassifier,
        MEDGaussianClassifier as MEDGaussianClassifier,
    )
    from maxent.discrimination.generative_columns import (
        MEDGenerativeClassifier as MEDGenerativeClassifier,
    )
    from maxent.discrimination.kernel_blocks import (
        GaussianCentre as GaussianCentre,
        GaussianScores as GaussianScores,
    )
    from maxent.discrimination.labels.partial_labels import (
        MEDPartialLabelClassifier as MEDPartialLabelClassifier,
    )
    from maxent.discrimination.margins import (
        CustomMargin as CustomMargin,
        ErlangMargin as ErlangMargin,
        ExponentialMargin as ExponentialMargin,
        FixedMargin as FixedMargin,
        GaussianMargin as GaussianMargin,
        HingeMargin as HingeMargin,
        LaplaceMargin as LaplaceMargin,
        LogisticMargin as LogisticMargin,
        MarginPrior as MarginPrior,
        QuadratureMargin as QuadratureMargin,
        UniformExponentialMargin as UniformExponentialMargin,
        margin_from_spec as margin_from_spec,
    )
    from maxent.discrimination.regression_selection import (
        MEDRegressionSelector as MEDRegressionSelector,
    )
    from maxent.discrimination.regressor import MEDRegressor as MEDRegressor
    from maxent.discrimination.search import (
        MEDClassifierCV as MEDClassifierCV,
        MEDRegressorCV as MEDRegressorCV,
    )
    from maxent.discrimination.selection import MEDFeatureSelector as MEDFeatureSelector
    from maxent.discrimination.trees import MEDTreeClassifier as MEDTreeClassifier
    from maxent.models.trees.chow_liu import (
        chow_liu_tree as chow_liu_tree,
        max_spanning_tree as max_spanning_tree,
    )
    from maxent.models.trees.dirichlet_trees import DirichletTrees as DirichletTrees
    from maxent.models.trees.partition import (
        sample_spanning_trees as sample_spanning_trees,
        spanning_tree_covariance as spanning_tree_covariance,
        spanning_tree_log_partition as spanning_tree_log_partition,
    )
    from maxent.models.trees.spanning_trees import SpanningTrees as SpanningTrees
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
