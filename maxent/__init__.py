"""Maximum-entropy learning: certified discrimination and kernels.

Import is lazy: ``import maxent`` costs little and loads neither scikit-learn nor
Numba; the parts load when first used.
"""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy

_SUBPACKAGES = (
    "datasets",
    "discrimination",
    "displays",
    "families",
    "kernels",
    "latent",
    "minentropy",
    "models",
)
_HOMES = {
    "discrimination": (
        "MEDClassifier",
        "MEDClassifierCV",
        "MEDRegressor",
        "MEDRegressorCV",
        "MEDFeatureSelector",
        "MEDRegressionSelector",
        "MEDGaussianClassifier",
        "MEDGenerativeClassifier",
        "MEDBayesNetClassifier",
        "MEDTreeClassifier",
        "ChowLiuClassifier",
        "MEDOutlierDetector",
        "MEDSequenceOutlierDetector",
        "MEDPartialLabelClassifier",
    ),
    "kernels": ("FisherFeatures",),
    "latent": (
        "LMEBoltzmannMachine",
        "LMEDirichletMixture",
        "LMEGaussianMixture",
        "LMERBM",
        "LatentMaxEnt",
        "MaxEntClassifier",
        "TrigramTopicModel",
    ),
    "minentropy": (
        "M3EClassifier",
        "M3EGridClassifier",
        "M3EModel",
        "M3EMotifClassifier",
    ),
    "models": ("HiddenMarkovEstimator", "MixtureDensity"),
    "_interchange.libsvm": ("to_libsvm",),
    "_interchange.onnx_graphs": ("register_onnx_converters", "to_onnx"),
    "_partitions.row_blocks": ("RowBlocks",),
    "_persistence.persistence": ("load", "save"),
    "_installation": ("get_include", "show_versions"),
    "_version": ("__version__",),
}

if TYPE_CHECKING:
    from maxent import (
        datasets as datasets,
        discrimination as discrimination,
        displays as displays,
        families as families,
        kernels as kernels,
        latent as latent,
        minentropy as minentropy,
        models as models,
    )
    from maxent._interchange.libsvm import to_libsvm as to_libsvm
    from maxent._interchange.onnx_graphs import (
        register_onnx_converters as register_onnx_converters,
        to_onnx as to_onnx,
    )
    from maxent._partitions.row_blocks import RowBlocks as RowBlocks
    from maxent._persistence.persistence import (
        load as load,
        save as save,
    )
    from maxent._installation import (
        get_include as get_include,
        show_versions as show_versions,
    )
    from maxent._version import __version__ as __version__
    from maxent.discrimination import (
        ChowLiuClassifier as ChowLiuClassifier,
        MEDBayesNetClassifier as MEDBayesNetClassifier,
        MEDClassifier as MEDClassifier,
        MEDClassifierCV as MEDClassifierCV,
        MEDFeatureSelector as MEDFeatureSelector,
        MEDGaussianClassifier as MEDGaussianClassifier,
        MEDGenerativeClassifier as MEDGenerativeClassifier,
        MEDOutlierDetector as MEDOutlierDetector,
        MEDPartialLabelClassifier as MEDPartialLabelClassifier,
        MEDRegressionSelector as MEDRegressionSelector,
        MEDRegressor as MEDRegressor,
        MEDRegressorCV as MEDRegressorCV,
        MEDSequenceOutlierDetector as MEDSequenceOutlierDetector,
        MEDTreeClassifier as MEDTreeClassifier,
    )
    from maxent.kernels import FisherFeatures as FisherFeatures
    from maxent.latent import (
        LMEBoltzmannMachine as LMEBoltzmannMachine,
        LMEDirichletMixture as LMEDirichletMixture,
        LMEGaussianMixture as LMEGaussianMixture,
        LMERBM as LMERBM,
        LatentMaxEnt as LatentMaxEnt,
        MaxEntClassifier as MaxEntClassifier,
        TrigramTopicModel as TrigramTopicModel,
    )
    from maxent.minentropy import (
        M3EClassifier as M3EClassifier,
        M3EGridClassifier as M3EGridClassifier,
        M3EModel as M3EModel,
        M3EMotifClassifier as M3EMotifClassifier,
    )
    from maxent.models import (
        HiddenMarkovEstimator as HiddenMarkovEstimator,
        MixtureDensity as MixtureDensity,
    )
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__, _HOMES, subpackages=_SUBPACKAGES
    )
