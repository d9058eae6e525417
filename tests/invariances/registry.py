"""What has to come of each cell: equal, refused, or documented otherwise.

A cell is a subject with a transformation that data of its kind have. It is equal
unless a row below says otherwise; the first row that fits decides. A row names
subjects and transformations, or groups of these, by patterns with "; " between.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import importlib
import pathlib

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGE = "guide/invariances.rst"


@dataclasses.dataclass(frozen=True)
class Equal:
    """Answers agree to a tolerance, in units of their size.

    ``slack`` is a factor of the error that the transformation itself makes.
    """

    slack: float = 1e4


@dataclasses.dataclass(frozen=True)
class Refused:
    """An error whose message matches."""

    match: str


@dataclasses.dataclass(frozen=True)
class Documented:
    """Answers differ, as a page or a docstring says in these words.

    Unless they differ ``always``, they may.
    """

    says: str
    where: str = PAGE
    always: bool = True


def text_of(where):
    """A page of the documentation, or the docstring of a public thing."""
    if where.endswith(".rst"):
        text = (DOCS / where).read_text(encoding="utf-8")
    else:
        module, name = where.rsplit(".", 1)
        text = getattr(importlib.import_module(module), name).__doc__
    return " ".join(text.split())


DISTANCES = Documented("takes all columns in one unit")
WEIGHTS = Documented("penalise weights, which are per unit of a column")
BY_PLACE = Documented("functions of arrays and take columns by their place")
NODES = Documented(
    "Arrays have them in the order of ``observed``", "guide/bayes_nets.rst"
)
STARTS = Documented("copies in place of weights, make other starts", always=False)
CODES = Documented("integers 0, 1, ... which number the categories, and -1")
HIDDEN = Documented(
    "in one class, ``pos_label``, which is the last one in sorted order"
)
NO_TEXT = Refused("cannot be converted to real numbers|has text")
NAMES = Refused("feature names should match")
OTHER_NODES = Refused("is none of them")
ALL_ROWS = Refused("needs all rows at once")

# what has rows to learn from, and no others to judge
WITHOUT_QUERY = (
    "solve_kernel_dual; solve_blocks; FamilyPrior and ProductPrior; max_margin; "
    "chow_liu_tree; fit_maxent; MaxEntModel; SampledMaxEnt; *_entropy"
)
# models of moments that tests/invariances/subjects takes
FROM_MOMENTS = (
    "LinearDynamicalSystem, of moments; SwitchingLDS, of moments; lds_*; switching_*; "
    "FactorialHMM, of moments; factorial_*"
)
# families, conjugate priors, kernels and solvers
FUNCTIONS = (
    "solve_linear_dual; Gaussian; DiagonalGaussian; SphericalGaussian; TiedGaussian; "
    "Independent; Product; Multinomial; "
    "Dirichlet; VonMisesFisher; "
    "NormalInverseWishart; DirichletCounts; DirichletProduct; DirichletBayesNet; "
    "DirichletTrees; SpanningTrees; product_kernel; product_kernel_tiles; "
    "hellinger_distance; k?_kernel; js_kernel; heat_kernel; shared_sample_features; "
    f"{FROM_MOMENTS}"
)
OF_CODES = (
    "solve_blocks; max_margin; chow_liu_tree; DirichletProduct; DirichletBayesNet; "
    "DirichletTrees; SpanningTrees; BayesNet*; MarkovRandomField; bayes_net_kernel"
)
NETS = "BayesNet*; MarkovRandomField; LinearGaussianNetwork*"
NET_KERNELS = "linear_gaussian_kernel; bayes_net_kernel"
WITHOUT_BLOCKS = (
    "MEDClassifier, rbf; MEDClassifier, poly; MEDClassifier, three; "
    "MEDClassifier, joint; MEDRegressor, rbf"
)
DISTANCE_MACHINES = (
    f"{WITHOUT_BLOCKS}; MEDClassifier, nystroem; MEDOutlierDetector, kernel*; "
    "MEDPartialLabelClassifier; MEDPartialLabelClassifier, three; "
    "solve_kernel_dual"
)
PENALISED = (
    "MEDClassifier, linear; MEDRegressor, linear; MEDFeatureSelector; "
    "MEDRegressionSelector; "
    "MaxEntClassifier; solve_linear_dual; M3E*; alpha_path"
)
SPARSE = (
    "MEDClassifier*; MEDRegressor*; MEDFeatureSelector; MEDRegressionSelector; "
    "MEDPartialLabelClassifier; MEDPartialLabelClassifier, three; "
    "MaxEntClassifier*; solve_kernel_dual; solve_linear_dual; DirichletCounts; "
    "js_kernel; heat_kernel; ProductKernel; fit_maxent; MaxEntModel; SampledMaxEnt"
)

ROWS = [
    # -- frames
    (NETS, "pandas, order of columns", Equal()),
    (NET_KERNELS, "pandas, order of columns", Equal()),
    (NETS, "pandas, other names", OTHER_NODES),
    (NET_KERNELS, "pandas, other names", OTHER_NODES),
    (WITHOUT_QUERY, "names", Equal()),
    (FUNCTIONS, "pandas, order of columns", BY_PLACE),
    (FUNCTIONS, "pandas, other names", Equal()),
    ("*", "names", NAMES),
    # -- columns that are nodes
    ("BayesNet; MarkovRandomField; bayes_net_kernel", "order of columns", NODES),
    # -- categories
    ("BayesNet*; MarkovRandomField", "other numbers of categories", CODES),
    (OF_CODES, "other numbers of categories", Refused("cod(e|es)|category")),
    (OF_CODES, "categories", NO_TEXT),
    # -- sparse rows and blocks of rows
    (SPARSE, "sparse", Equal()),
    ("*", "sparse", Refused("is sparse|Sparse data was passed")),
    (WITHOUT_BLOCKS, "dask", ALL_ROWS),
    ("LMEDirichletMixture", "dask", Refused("which LMEDirichletMixture does not fit")),
    (
        "GaussianHMM, with holes",
        "Dask array and lengths",
        Refused("fits to Dask arrays take rows that are NaN as a whole"),
    ),
    # -- labels and letters
    ("*", "labels of floats", Refused("Unknown label type: continuous")),
    ("M3EModel, chain", "labels of text, backwards", STARTS),
    ("M3E*", "labels of text, backwards", HIDDEN),
    ("alpha_path", "labels of text, backwards", HIDDEN),
    ("M3EMotifClassifier", "lower case", Refused("Write all in one case")),
    (
        "MEDSequenceOutlierDetector, categorical",
        "text of letters",
        Refused("pass the letters in order, for instance alphabet='ACGT'"),
    ),
    # -- what is hidden
    (FROM_MOMENTS, "masked", Equal()),
    ("*", "masked", Refused("is a masked array")),
    # -- units
    (DISTANCE_MACHINES, "own unit of each column", DISTANCES),
    (PENALISED, "unit", WEIGHTS),
    (PENALISED, "units", WEIGHTS),
    (
        "SphericalGaussian; LMEGaussianMixture, spherical",
        "units",
        Documented("spherical have one variance for all columns"),
    ),
    # -- origin
    (
        "MEDClassifier, poly",
        "origin",
        Documented('Kernels of inner products, such as "poly", depend on the origin'),
    ),
    (
        "solve_linear_dual",
        "origin 1e+08",
        Documented("Beyond about 10\\ :sup:`6` times the spread rounding stops it"),
    ),
    (
        "fisher_kernel; FisherFeatures",
        "origin 1e+08",
        Refused("the information is singular within rounding"),
    ),
    # the condition is the square of origin over spread
    ("fisher_kernel; FisherFeatures", "origin 1e+06", Equal(slack=1e6)),
    # -- zeros and ones have collinear statistics
    ("fisher_kernel; FisherFeatures", "truths", Refused("not positive definite")),
    # -- starts that are drawn
    ("LMEGaussianMixture; LMEGaussianMixture, likelihood", "order of rows", STARTS),
    ("LMEGaussianMixture; LMEGaussianMixture, likelihood", "weights", STARTS),
    ("SwitchingLDS; FactorialHMM", "rows", STARTS),
    ("SwitchingLDS; FactorialHMM", "columns", STARTS),
    ("M3EModel, chain", "weights", STARTS),
    ("BayesNet, hidden", "order of columns", STARTS),
    (
        "Product",
        "order of columns",
        Documented("the number of a column", "maxent.families.Product"),
    ),
    (
        "shared_sample_features",
        "order of columns",
        Documented("their error with the order of the columns"),
    ),
]


@functools.cache
def _row(subject, transformation, group):
    for number, (subjects, transformations, _) in enumerate(ROWS):
        named = any(fnmatch.fnmatch(subject, one) for one in subjects.split("; "))
        if named and (
            fnmatch.fnmatch(transformation, transformations) or group == transformations
        ):
            return number
    return None


def row_of(subject, transformation):
    """Number of the row that decides about a cell; None for one that is equal."""
    return _row(subject.name, transformation.name, transformation.group)


def expected(subject, transformation):
    number = row_of(subject, transformation)
    return Equal() if number is None else ROWS[number][2]
