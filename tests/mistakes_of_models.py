"""Mistakes with distributions, sequence models, kernels between models, latent models.

Rows as in `mistakes_of_estimators`.
"""

import numpy as np
from mistakes_of_estimators import CODES, HOLED, E, X, Y

from maxent.families import (
    Beta,
    Categorical,
    DiagonalGaussian,
    DirichletProduct,
    Gamma,
    Gaussian,
    Multinomial,
    NormalInverseWishart,
    Poisson,
    VonMisesFisher,
    Wishart,
)
from maxent.kernels import (
    ProductKernel,
    fisher_kernel,
    lds_kernel,
    switching_lds_kernel,
)
from maxent.latent import (
    FiniteLatentModel,
    LMEBoltzmannMachine,
    LMEDirichletMixture,
    LMEGaussianMixture,
    TrigramTopicModel,
    em_is,
    fit_maxent,
)
from maxent.models import (
    BayesNet,
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    MarkovChain,
    Mixture,
    SwitchingLDS,
)

FACES = np.arange(1.0, 7.0)[:, None]
ROWS = [[0.9, 0.1], [0.2, 0.8]]
SYSTEM = LinearDynamicalSystem([[0.9]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
GROWING = LinearDynamicalSystem([[1.5]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])


def gaussian():
    return Gaussian.fit(X)


def hmm():
    return CategoricalHMM([0.5, 0.5], ROWS, [[0.25] * 4] * 2, alphabet="ACGT")


def sequences(*given, model=CategoricalHMM, **options):
    return lambda: model.fit(list(given), **{"n_states": 2, **options})


def die(*target, **options):
    return lambda: fit_maxent(FACES, target, **options)


def mixture(**parameters):
    return lambda: LMEGaussianMixture(**parameters).fit(X)


FAMILIES = {
    "deviations for covariances": (
        *(lambda: Gaussian([0.0, 0.0], [1.0, 1.0]), E),
        *("cov", "(2,)", "needs 2 axes"),
    ),
    "covariance not symmetric": (
        *(lambda: Gaussian([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), E),
        *("cov", "not symmetric", "the mean of it and its transpose"),
    ),
    "covariance not positive": (
        *(lambda: Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), E),
        *("cov", "-1", "Add a ridge"),
    ),
    "negative variance": (
        *(lambda: DiagonalGaussian([0.0, 0.0], [1.0, -1.0]), E),
        *("var[1]", "-1", "> 0"),
    ),
    "probabilities that do not sum to 1": (
        *(lambda: Categorical([0.2, 0.2, 0.2]), E),
        *("prob", "0.6", "Divide by the sum"),
    ),
    "counts for probabilities": (
        *(lambda: Categorical([2, 3, 5]), E),
        *("prob[0]", "2", "in [0, 1]"),
    ),
    "too few rows for a covariance": (
        *(lambda: Gaussian.fit(X[:2]), E),
        *("3 dimensions", "smoothing=0", "set smoothing > 0"),
    ),
    "fractions for counts": (
        *(lambda: Poisson.fit([0.5, 1.5]), E),
        *("X[0]", "0.5", "counts 0, 1, 2"),
    ),
    "percentages for shares": (
        *(lambda: Beta.fit([0.2, 17.0]), E),
        *("X[1]", "17.0", "numbers in [0, 1]"),
    ),
    "weights of other rows": (
        *(lambda: Gaussian.fit(X, np.ones(3)), E),
        *("weights", "(3,)", "one weight per row"),
    ),
    "rows of other dimension": (
        *(lambda: gaussian().log_prob(X[:, :2]), E),
        *("X", "(30, 2)", "(..., n_samples, 3)"),
    ),
    "two families": (
        *(lambda: gaussian().kl(DiagonalGaussian.fit(X)), TypeError),
        *("Gaussian", "DiagonalGaussian", "must be of one family"),
    ),
    "power zero": (
        *(lambda: gaussian().log_affinity(gaussian(), 0), E),
        *("rho", "0", "> 0"),
    ),
    "half a draw": (lambda: gaussian().sample(2.5), E, "n=", "2.5", "integer >= 1"),
    "seed as a word": (
        *(lambda: gaussian().sample(2, random_state="a"), E),
        *("random_state", "'a'", "an integer >= 0"),
    ),
    "smoothing without meaning": (
        *(lambda: Gamma.fit([1.0, 2.0], smoothing=1.0), E),
        *("smoothing", "1", "leave it 0"),
    ),
    "direction not of length 1": (
        *(lambda: VonMisesFisher([2.0, 0.0], 1.0), E),
        *("mean_direction", "2", "Divide by the length"),
    ),
    "degrees of freedom": (
        *(lambda: Wishart(1.0, np.eye(3)), E),
        *("df", "1", "> p - 1 = 2"),
    ),
    "rows of another prior": (
        *(lambda: NormalInverseWishart.weak(X).posterior(X[:, :2]), E),
        *("X", "(30, 2)", "3 features are expected"),
    ),
    "categories not counted": (
        *(lambda: DirichletProduct(1.0), E),
        *("n_categories", "pseudo_counts", "one number"),
    ),
    "category beyond the last": (
        *(lambda: DirichletProduct(1.0, n_categories=[2, 2]).posterior([[0, 5]]), E),
        *("X[0, 1]", "5", "codes 0 to 1"),
    ),
    "documents of several lengths": (
        *(lambda: Multinomial.fit([[1, 2], [2, 3]]), E),
        *("X", "3 and 5", "Pass total="),
    ),
}

SEQUENCES = {
    "letters without alphabet": (
        *(sequences("A", "C", "G"), E),
        *("sequences[0]", "'A'", "alphabet='ACG'"),
    ),
    "letter outside the alphabet": (
        *(sequences("ACG", "ACGE", alphabet="ACGT"), E),
        *("sequences[1][3]", "'E'", "missing="),
    ),
    "fractions for codes": (
        *(sequences([0.5, 1.0]), E),
        *("sequences[0][0]", "0.5", "integers 0, 1, 2"),
    ),
    "code beyond the alphabet": (
        *(lambda: hmm().viterbi([[0, 7]]), E),
        *("sequences[0][1]", "7", "codes are 0 to 3"),
    ),
    "lengths of other sequences": (
        *(lambda: CategoricalHMM.fit(np.array([0, 1, 0, 1]), 2, lengths=[3, 3]), E),
        *("lengths", "6", "the number of rows of every sequence"),
    ),
    "empty sequence": (
        *(sequences([0, 1], []), E),
        *("sequences[1]", "empty", "drop empty sequences"),
    ),
    "empty sequence of letters": (
        *(sequences("ACG", ""), E),
        *("sequences[1]", "empty", "drop empty sequences"),
    ),
    "no sequence": (sequences(), E, "sequences", "empty", "pass one"),
    "means of states as a vector": (
        *(lambda: GaussianHMM([0.5, 0.5], ROWS, [0.0, 1.0], [1.0, 1.0]), E),
        *("mean", "(2,)", "(n_states, n_features) is expected"),
    ),
    "draws of a system that grows": (
        *(lambda: GROWING.sample(1, 3000, random_state=0), E),
        *("step", "3000", "Take fewer steps"),
    ),
    "horizon of a system that grows": (
        *(lambda: GROWING.marginals(2000), E),
        *("step", "2001", "a stable transition"),
    ),
    "measurements for categories": (
        *(lambda: BayesNet.fit([[0, 1.7], [1, 0.2]], {"a": [], "b": ["a"]}), E),
        *("X[0, 1]", "1.7", "cut measurements into bins"),
    ),
    "states as float": (
        *(sequences([0, 1, 0], n_states=2.0), E),
        *("n_states", "2.0", "pass 2"),
    ),
    "several numbers of states": (
        *(sequences([0, 1, 0], n_states=[2, 3]), E),
        *("n_states", "[2, 3]", "models by log_likelihood"),
    ),
    "number for a callback": (
        *(sequences([0, 1, 0], n_states=2, callback=3), TypeError),
        *("callback", "3", "n_iter, objective and gain"),
    ),
    "counts of transitions": (
        *(lambda: CategoricalHMM([0.5, 0.5], [[9, 1], [2, 8]], ROWS), E),
        *("transition[0, 0]", "9", "in [0, 1]"),
    ),
    "emissions of one state": (
        *(lambda: CategoricalHMM([0.5, 0.5], ROWS, [[0.5, 0.5]]), E),
        *("emission", "(1, 2)", "each of the 2 states"),
    ),
    "negative seed": (
        *(sequences([0, 1, 0], random_state=-1), E),
        *("random_state", "-1", "an integer >= 0"),
    ),
    "start by a word": (
        *(sequences([0, 1, 0], init="kmeans"), TypeError),
        *("init", "'kmeans'", "must be a CategoricalHMM"),
    ),
    "covariance of another library": (
        *(sequences(X, model=GaussianHMM, covariance_type="diag"), E),
        *("covariance_type", "'diag'", "Did you mean 'diagonal'"),
    ),
    "sequences of two widths": (
        *(sequences(X, X[:, :2], model=GaussianHMM), E),
        *("sequences[1]", "2 columns", "3 are expected"),
    ),
    "an infinite vector": (
        *(sequences(np.where(np.isnan(HOLED), np.inf, HOLED), model=GaussianHMM), E),
        *("sequences[0][2]", "inf", "a missing observation is NaN"),
    ),
    "strings for vectors": (
        *(sequences("ACGT", model=GaussianHMM), E),
        *("sequences", "'ACGT'", "use CategoricalHMM"),
    ),
    "no estimator of the other library": (
        *(lambda: GaussianHMM.from_hmmlearn(hmm()), TypeError),
        *("model", "CategoricalHMM", "a fitted hmmlearn.hmm.GaussianHMM"),
    ),
    "family by name": (
        *(lambda: Mixture.fit(X, family="gaussian"), TypeError),
        *("family", "'gaussian'", "maxent.families.Gaussian"),
    ),
    "more components than rows": (
        *(lambda: Mixture.fit(X[:2], n_components=5), E),
        *("n_components", "5", "lower it or add rows"),
    ),
    "missing entry of a mixture": (
        *(lambda: Mixture.fit(HOLED, family=Multinomial), E),
        *("X[2, 1]", "nan", "fill in what is missing, or drop the row"),
    ),
    "start of a chain": (
        *(lambda: MarkovChain.fit(["ACGT"], alphabet="ACGT", start="last"), E),
        *("start", "'last'", "'first', 'all'"),
    ),
    "no number of states": (
        *(sequences(X, model=LinearDynamicalSystem, n_states=None), E),
        *("n_states", "None", "give n_states"),
    ),
    "fixed parameter without a start": (
        *(sequences(X, model=LinearDynamicalSystem, fixed=["A"]), E),
        *("fixed", "'A'", "give it by init="),
    ),
    "one number for many chains": (
        *(sequences(X, model=FactorialHMM), E),
        *("n_states", "2", "such as [2, 3]"),
    ),
    "no number of regimes": (
        *(sequences(X, model=SwitchingLDS), E),
        *("n_regimes", "None", "give n_regimes"),
    ),
    "parent after its child": (
        *(
            lambda: LinearGaussianNetwork.fit(X, {"a": 1, "b": 2}, {"a": ["b"]}),
            E,
        ),
        *("order", "['a', 'b']", "parents first"),
    ),
    "unknown parent": (
        *(
            lambda: LinearGaussianNetwork.fit(X, {"a": 1, "b": 2}, {"b": ["z"]}),
            E,
        ),
        *("parents['b']", "'z'", "choose from a, b"),
    ),
}

KERNELS_AND_LATENT = {
    "kernel of documents": (
        *(lambda: ProductKernel().fit(["good film", "bad film"]), E),
        *("X[0]", "good film", "CountVectorizer before the estimator; for sequences"),
    ),
    "kernel of an array of documents": (
        *(lambda: ProductKernel().fit([[1]]).transform(np.array(["bad film"])), E),
        *("X[0]", "bad film", "CountVectorizer"),
    ),
    "one model for many": (
        *(lambda: lds_kernel(SYSTEM, horizon=3), TypeError),
        *("P", "LinearDynamicalSystem", "[P]"),
    ),
    "series for models": (
        *(lambda: lds_kernel([X, X], horizon=3), TypeError),
        *("P[0]", "array", "LinearDynamicalSystem"),
    ),
    "models of another kind": (
        *(lambda: switching_lds_kernel([SYSTEM], horizon=2), TypeError),
        *("P[0]", "LinearDynamicalSystem(", "SwitchingLDS"),
    ),
    "negative horizon": (
        *(lambda: lds_kernel([SYSTEM], horizon=-1), E),
        *("horizon", "-1", "an integer >= 0"),
    ),
    "negative power": (
        *(lambda: lds_kernel([SYSTEM], horizon=2, rho=-1), E),
        *("rho", "-1", "> 0"),
    ),
    "method misspelled": (
        *(lambda: lds_kernel([SYSTEM], horizon=2, method="step"), E),
        *("method", "'step'", "'per_step'"),
    ),
    "no model": (
        *(lambda: lds_kernel([], horizon=2), E),
        *("P", "[]", "pass one at least"),
    ),
    "score of probability zero": (
        *(lambda: fisher_kernel(HOLED), E),
        *("scores[2, 1]", "nan", "smooth the model"),
    ),
    "fewer scores than parameters": (
        *(lambda: fisher_kernel(X[:2]), E),
        *("n_samples = 2", "3 parameters", "ridge=0.01"),
    ),
    "information misspelled": (
        *(lambda: fisher_kernel(X, information="diag"), E),
        *("information", "'diag'", "Did you mean 'diagonal'"),
    ),
    "information from nowhere": (
        *(lambda: fisher_kernel(X, X[:3]), E),
        *("reference", "two sets of scores", "pass reference="),
    ),
    "components as float": (
        *(mixture(n_components=2.0), E),
        *("n_components", "2.0", "pass 2"),
    ),
    "components without rows": (
        *(mixture(n_components=50), E),
        *("n_components", "50", "lower it or add rows"),
    ),
    "unknown covariance": (
        *(mixture(covariance_type="tied"), E),
        *("covariance_type", "'tied'", "'spherical'"),
    ),
    "unknown choice": (
        *(mixture(selection="bic"), E),
        *("selection", "'bic'", "'likelihood'"),
    ),
    "rows that are no shares": (
        *(lambda: LMEDirichletMixture(2).fit(np.abs(X)), E),
        *("row 0 of X", "sums to", "divide them by their sums"),
    ),
    "measurements for bits": (
        *(lambda: LMEBoltzmannMachine().fit(CODES), E),
        *("X[0, 2]", "2", "threshold the data"),
    ),
    "too many units": (
        *(lambda: LMEBoltzmannMachine().fit(Y[:, None] * np.ones(40)), E),
        *("42 units", "bytes as one table", "moments='sampled'"),
    ),
    "too many hidden units": (
        *(lambda: LMEBoltzmannMachine(n_hidden=40).fit(Y[:, None] * [1, 0, 1]), E),
        *("n_hidden", "40", "at most 20 hidden"),
    ),
    "mean out of reach": (
        *(die(7.5), E),
        *("target[0]", "7.5", "sigma2 < inf"),
    ),
    "features of one axis": (
        *(lambda: fit_maxent(FACES[:, 0], [4.5]), E),
        *("features", "(6,)", "(n_states, n_features)"),
    ),
    "means of other features": (
        *(die(4.5, 2.0), E),
        *("target", "(2,)", "one mean per feature"),
    ),
    "method of another library": (
        *(die(4.5, method="bfgs"), E),
        *("method", "'bfgs'", "Did you mean 'lbfgs'"),
    ),
    "box without width": (
        *(die(4.5, penalty="box"), E),
        *("width", "penalty='box'", "how far"),
    ),
    "width without box": (
        *(die(4.5, width=0.1), E),
        *("width", "0.1", "use sigma2"),
    ),
    "negative variance of weights": (die(4.5, sigma2=-1), E, "sigma2", "-1", "> 0"),
    "value that was never described": (
        *(lambda: em_is(FiniteLatentModel(np.ones((2, 2, 1))), [0, 5], [0.0]), E),
        *("data[1]", "5", "use integers 0..1"),
    ),
    "table for a model": (
        *(lambda: em_is(np.ones((2, 2, 1)), [0, 1], [0.0]), TypeError),
        *("model", "array", "FiniteLatentModel(features)"),
    ),
    "documents as strings": (
        *(lambda: TrigramTopicModel().fit(["a b c d"]), E),
        *("X[0]", "string", "X[0].split()"),
    ),
    "document of two words": (
        *(lambda: TrigramTopicModel().fit([["a", "b"]]), E),
        *("X[0]", "2 words", "drop it"),
    ),
}
