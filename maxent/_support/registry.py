"""Classes that a model file may name; no other code is called by a file."""

from __future__ import annotations

import importlib
from typing import Any

# The only estimators that a model file may name.
CLASSES = {
    "CalibratedClassifierCV": "sklearn.calibration:CalibratedClassifierCV",
    "ChowLiuClassifier": "maxent.discrimination:ChowLiuClassifier",
    "FisherFeatures": "maxent.kernels:FisherFeatures",
    "FisherScores": "maxent.kernels.scores.fisher_scores:FisherScores",
    "HiddenMarkovEstimator": "maxent.models.chains.estimator:HiddenMarkovEstimator",
    "LMEBoltzmannMachine": "maxent.latent.boltzmann.machines:LMEBoltzmannMachine",
    "LMEDirichletMixture": "maxent.latent.mixtures.dirichlet:LMEDirichletMixture",
    "LMEGaussianMixture": "maxent.latent.mixtures.gaussian:LMEGaussianMixture",
    "LMERBM": "maxent.latent.boltzmann.machines:LMERBM",
    "LatentMaxEnt": "maxent.latent.candidates:LatentMaxEnt",
    "M3EClassifier": "maxent.minentropy:M3EClassifier",
    "M3EGridClassifier": "maxent.minentropy:M3EGridClassifier",
    "M3EModel": "maxent.minentropy:M3EModel",
    "M3EMotifClassifier": "maxent.minentropy:M3EMotifClassifier",
    "MEDBayesNetClassifier": "maxent.discrimination:MEDBayesNetClassifier",
    "MEDClassifier": "maxent.discrimination:MEDClassifier",
    "MEDFeatureSelector": "maxent.discrimination:MEDFeatureSelector",
    "MEDGaussianClassifier": "maxent.discrimination:MEDGaussianClassifier",
    "MEDGenerativeClassifier": "maxent.discrimination:MEDGenerativeClassifier",
    "MEDOutlierDetector": "maxent.discrimination:MEDOutlierDetector",
    "MEDPartialLabelClassifier": "maxent.discrimination:MEDPartialLabelClassifier",
    "MEDRegressionSelector": "maxent.discrimination:MEDRegressionSelector",
    "MEDRegressor": "maxent.discrimination:MEDRegressor",
    "MEDSequenceOutlierDetector": "maxent.discrimination:MEDSequenceOutlierDetector",
    "MEDTreeClassifier": "maxent.discrimination:MEDTreeClassifier",
    "MaxEntClassifier": "maxent.latent.classifier:MaxEntClassifier",
    "MixtureDensity": "maxent.models.mixture_density:MixtureDensity",
    "Pipeline": "sklearn.pipeline:Pipeline",
    "ProductKernel": "maxent.kernels.transformer:ProductKernel",
    "TrigramTopicModel": "maxent.latent.language.trigram_topics:TrigramTopicModel",
}

# The only classes of values; each is rebuilt by `from_spec` or by its constructor, and
# both check what they are given.
VALUES = {
    name: f"maxent.{module}:{name}"
    for module, names in {
        "discrimination.detection.chain_posterior": ("ChainPosterior",),
        "discrimination.kernel_blocks": (
            "GaussianCentre",
            "GaussianScores",
            "KernelPosterior",
        ),
        "discrimination.detection.latent_mixture": (
            "LatentMixture",
            "MixturePosterior",
        ),
        "discrimination.margins.priors": (
            "ErlangMargin",
            "ExponentialMargin",
            "FixedMargin",
            "GaussianMargin",
            "HingeMargin",
            "LaplaceMargin",
            "LogisticMargin",
            "UniformExponentialMargin",
        ),
        "discrimination.margins.quadrature": ("QuadratureMargin",),
        "models.networks.bayes_net": ("BayesNet",),
        "models.chains.factorial": ("FactorialHMM",),
        "models.systems.lds": ("LinearDynamicalSystem",),
        "models.networks.linear_gaussian": ("LinearGaussianNetwork",),
        "models.networks.random_field": ("MarkovRandomField",),
        "models.systems.switching": ("SwitchingLDS",),
        "latent.mixtures._mixture_prior": ("MixturePrior",),
        "latent._log_linear": ("FiniteLatentModel",),
        "latent.model": ("MaxEntModel", "SampledMaxEnt"),
        "models.trees.dirichlet_trees": ("DirichletTrees",),
        "models.trees.spanning_trees": ("SpanningTrees",),
        "models.chains.gaussian_hmm": ("GaussianHMM",),
        "models.chains.hidden_markov": ("HiddenMarkovModel",),
        "models.chains.hmm": ("CategoricalHMM",),
        "models.chains.markov": ("MarkovChain",),
        "models.mixture": ("Mixture",),
        "models.mixtures": ("Mixtures",),
        "minentropy._trust_ball": ("TrustBall",),
        "minentropy.motif_table": ("Motif",),
        "minentropy.feature_maps": ("ChainMap",),
        "families.columns": ("Independent",),
        "families.product": ("Product",),
        "families.counts": ("Geometric", "NegativeBinomial", "Poisson"),
        "families.directional": ("VonMisesFisher",),
        "families.discrete": ("Bernoulli", "Categorical"),
        "families.gaussian": ("Gaussian", "TiedGaussian"),
        "families.independent": ("DiagonalGaussian", "SphericalGaussian"),
        "families.multinomial": ("Multinomial",),
        "families.positive": ("Exponential", "Gamma"),
        "families.simplex": ("Beta", "Dirichlet"),
        "families.wishart": ("InverseWishart", "Wishart"),
        "families.priors.dirichlet_nets": ("DirichletBayesNet", "DirichletProduct"),
        "families.priors.dirichlet_tables": ("DirichletCounts",),
        "families.priors.column_priors": ("ProductPrior",),
        "families.priors.family_prior": ("FamilyPrior",),
        "families.linear_gaussian": ("NormalGamma",),
        "families.priors.normal_wishart": ("NormalInverseWishart",),
    }.items()
    for name in names
}


def rebuilt(cls: type[Any], spec: Any) -> Any:
    """Value of a class from what its ``get_spec`` returned."""
    return cls.from_spec(spec) if hasattr(cls, "from_spec") else cls(**spec)


def resolve(home: str) -> type[Any]:
    """Import and return the class at "module:class"."""
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(module), attribute)
