"""Kernels between data through generative models, and between models."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "pairs._gaussian_parts": ("GaussianParts",),
    "scores.fisher": ("FisherFeatures", "fisher_kernel"),
    "scores.fisher_scores": ("FisherScores",),
    "pairs.linear_gaussian": ("linear_gaussian_kernel",),
    "pairs.switching": ("SwitchingPaths", "switching_lds_kernel"),
    "pairs.factorial": ("factorial_hmm_kernel",),
    "product": ("hellinger_distance", "product_kernel"),
    "tiles": ("product_kernel_tiles",),
    "transformer": ("ProductKernel",),
    "sampling": ("SharedSample", "shared_sample_features"),
    "pairs.lds": ("lds_affinity_parts", "lds_kernel"),
    "pairs.bayes_net": ("bayes_net_kernel",),
    "divergences": ("heat_kernel", "js_kernel", "kl_kernel"),
    "marginalized": ("marginalized_features", "marginalized_kernel"),
    "repair": ("repair_kernel",),
    "strings": ("spectrum_features", "spectrum_kernel"),
}

if TYPE_CHECKING:
    from maxent.kernels.divergences import heat_kernel as heat_kernel
    from maxent.kernels.divergences import js_kernel as js_kernel
    from maxent.kernels.divergences import kl_kernel as kl_kernel
    from maxent.kernels.marginalized import (
        marginalized_features as marginalized_features,
    )
    from maxent.kernels.marginalized import marginalized_kernel as marginalized_kernel
    from maxent.kernels.pairs._gaussian_parts import GaussianParts as GaussianParts
    from maxent.kernels.pairs.bayes_net import bayes_net_kernel as bayes_net_kernel
    from maxent.kernels.pairs.factorial import (
        factorial_hmm_kernel as factorial_hmm_kernel,
    )
    from maxent.kernels.pairs.lds import lds_affinity_parts as lds_affinity_parts
    from maxent.kernels.pairs.lds import lds_kernel as lds_kernel
    from maxent.kernels.pairs.linear_gaussian import (
        linear_gaussian_kernel as linear_gaussian_kernel,
    )
    from maxent.kernels.pairs.switching import SwitchingPaths as SwitchingPaths
    from maxent.kernels.pairs.switching import (
        switching_lds_kernel as switching_lds_kernel,
    )
    from maxent.kernels.product import hellinger_distance as hellinger_distance
    from maxent.kernels.product import product_kernel as product_kernel
    from maxent.kernels.repair import repair_kernel as repair_kernel
    from maxent.kernels.sampling import SharedSample as SharedSample
    from maxent.kernels.sampling import shared_sample_features as shared_sample_features
    from maxent.kernels.scores.fisher import FisherFeatures as FisherFeatures
    from maxent.kernels.scores.fisher import fisher_kernel as fisher_kernel
    from maxent.kernels.scores.fisher_scores import FisherScores as FisherScores
    from maxent.kernels.strings import spectrum_features as spectrum_features
    from maxent.kernels.strings import spectrum_kernel as spectrum_kernel
    from maxent.kernels.tiles import product_kernel_tiles as product_kernel_tiles
    from maxent.kernels.transformer import ProductKernel as ProductKernel
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
