"""Readers of the bundled CSV files, in scikit-learn's Bunch convention.

Importing this module loads neither scikit-learn nor pandas.  The files and where they
come from are described in the README beside them.
"""

from __future__ import annotations

import csv
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_CRABS_DESCR = """\
Leptograpsus crabs
------------------

Five measurements, in millimetres, of 200 rock crabs of the genus Leptograpsus collected
at Fremantle, Western Australia: 50 males and 50 females of each of two colour forms
(blue and orange), which were later recognised as species.

:Number of instances: 200 (50 in each of the four species-by-sex groups)
:Number of attributes: 5 numeric (mm) and two labels, sex and species
:Attributes: FL frontal lobe size, RW rear width, CL carapace length,
    CW carapace width, BD body depth
:Missing values: none

The measurements grow with the animal and are strongly correlated; the classes differ
in shape more than in size.  The usual experiment trains on 80 crabs, 20 of each group,
and tests on the other 120.

References

- N. A. Campbell and R. J. Mahon (1974), A multivariate study of variation in two
  species of rock crab of genus Leptograpsus, Australian Journal of Zoology 22, 417-425.
- B. D. Ripley (1996), Pattern Recognition and Neural Networks, Cambridge University
  Press.
"""

_WISCONSIN_DESCR = """\
Breast Cancer Wisconsin (original)
----------------------------------

Nine scores from 1 (nearest to benign) to 10 (most anaplastic), given by eye to
fine-needle aspirates of breast masses at the University of Wisconsin Hospitals,
Madison, from 1989 to 1991.

:Number of instances: 699 (458 benign, 241 malignant)
:Number of attributes: 9 numeric (integers from 1 to 10)
:Attributes: clump_thickness, cell_size (uniformity of), cell_shape (uniformity of),
    adhesion (marginal), epithelial_size (single cell), bare_nuclei, chromatin (bland),
    nucleoli (normal), mitoses
:Missing values: 16, all in bare_nuclei

The cases came in eight batches; ``groups`` holds the batch, 1 (January 1989, 367 rows)
to 8 (November 1991).

References

- W. H. Wolberg and O. L. Mangasarian (1990), Multisurface method of pattern separation
  for medical diagnosis applied to breast cytology, PNAS 87, 9193-9196.
- J. Zhang (1992), Selecting typical instances in instance-based learning, Proceedings
  of the ninth International Conference on Machine Learning, 470-479.
"""


@overload
def load_crabs(
    *,
    target: Literal["sex", "species"] = ...,
    return_X_y: Literal[False] = ...,
    as_frame: bool = ...,
) -> Bunch: ...
@overload
def load_crabs(
    *,
    target: Literal["sex", "species"] = ...,
    return_X_y: Literal[True],
    as_frame: Literal[False] = ...,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...
@overload
def load_crabs(
    *,
    target: Literal["sex", "species"] = ...,
    return_X_y: bool,
    as_frame: bool = ...,
) -> Any: ...
def load_crabs(
    *,
    target: Literal["sex", "species"] = "sex",
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the Leptograpsus crabs (classification, 200 rows, 5 measurements).

    ==================  =======================
    Classes             2 (sex or species)
    Samples per class   100
    Samples total       200
    Features            5, positive, millimetres
    ==================  =======================

    Parameters
    ----------
    target : {"sex", "species"}, default="sex"
        Which of the two labels to predict.  The other one is returned in `groups`.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        If True, `data` is a pandas DataFrame and `target` a pandas Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        data : ndarray or DataFrame of shape (200, 5)
            The measurements FL, RW, CL, CW, BD in millimetres.
        target : ndarray or Series of shape (200,)
            0 or 1, an index into `target_names`.
        feature_names : list of str
            Names of the columns.
        target_names : ndarray of str, shape (2,)
            ``["female", "male"]`` or ``["blue", "orange"]``.
        groups : ndarray of str, shape (200,)
            The label that is not the target; stratify by target and group to keep
            the four species-by-sex groups balanced.
        frame : DataFrame of shape (200, 6) or None
            Features and target together, if `as_frame`.
        DESCR : str
            The description of the data and its sources.

    (data, target) : tuple if `return_X_y` is True

    References
    ----------
    .. [1] N. A. Campbell and R. J. Mahon (1974), A multivariate study of variation in
       two species of rock crab of genus Leptograpsus, Australian Journal of Zoology
       22, 417-425.

    Examples
    --------
    >>> from maxent.datasets import load_crabs
    >>> crabs = load_crabs()
    >>> crabs.data.shape
    (200, 5)
    >>> crabs.target_names.tolist(), sorted(set(crabs.groups.tolist()))
    (['female', 'male'], ['blue', 'orange'])
    """
    _check_choice("load_crabs", "target", target, ("sex", "species"))
    header, rows = _read("crabs.csv")
    codes = {"B": "blue", "O": "orange", "F": "female", "M": "male"}
    labels = {
        "species": np.array([codes[row[0]] for row in rows]),
        "sex": np.array([codes[row[1]] for row in rows]),
    }
    target_names, y = np.unique(labels[target], return_inverse=True)
    return _pack(
        "load_crabs",
        X=np.array([row[3:] for row in rows], dtype=np.float64),
        y=y.astype(np.int64),
        feature_names=header[3:],
        target_names=target_names,
        groups=labels["species" if target == "sex" else "sex"],
        descr=_CRABS_DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


@overload
def load_breast_cancer_wisconsin(
    *,
    missing: Literal["drop", "nan"] = ...,
    return_X_y: Literal[False] = ...,
    as_frame: bool = ...,
) -> Bunch: ...
@overload
def load_breast_cancer_wisconsin(
    *,
    missing: Literal["drop", "nan"] = ...,
    return_X_y: Literal[True],
    as_frame: Literal[False] = ...,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...
@overload
def load_breast_cancer_wisconsin(
    *,
    missing: Literal["drop", "nan"] = ...,
    return_X_y: bool,
    as_frame: bool = ...,
) -> Any: ...
def load_breast_cancer_wisconsin(
    *,
    missing: Literal["drop", "nan"] = "drop",
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load Breast Cancer Wisconsin, original (classification, 9 cytology scores).

    This is the database of 1991 with integer scores, not the diagnostic one of 1995
    with 30 measurements that scikit-learn ships.

    ==================  ==================================
    Classes             2
    Samples per class   444 benign, 239 malignant
    Samples total       683 (699 with missing values kept)
    Features            9, integers from 1 to 10
    ==================  ==================================

    Parameters
    ----------
    missing : {"drop", "nan"}, default="drop"
        What to do with the 16 rows whose `bare_nuclei` was not recorded: leave them
        out (683 rows), or keep them with NaN in that column (699 rows).
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        If True, `data` is a pandas DataFrame and `target` a pandas Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        data : ndarray or DataFrame of shape (683, 9) or (699, 9)
            The scores, as float64.
        target : ndarray or Series of shape (683,) or (699,)
            0 benign, 1 malignant.
        feature_names : list of str
            Names of the columns.
        target_names : ndarray of str, shape (2,)
            ``["benign", "malignant"]``.
        groups : ndarray of int, shape (683,) or (699,)
            The batch in which the case was reported, 1 (January 1989) to 8
            (November 1991).
        frame : DataFrame of shape (683, 10) or (699, 10), or None
            Features and target together, if `as_frame`.
        DESCR : str
            The description of the data and its sources.

    (data, target) : tuple if `return_X_y` is True

    References
    ----------
    .. [1] W. H. Wolberg and O. L. Mangasarian (1990), Multisurface method of pattern
       separation for medical diagnosis applied to breast cytology, PNAS 87, 9193-9196.

    Examples
    --------
    >>> from maxent.datasets import load_breast_cancer_wisconsin
    >>> X, y = load_breast_cancer_wisconsin(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((683, 9), 239)
    """
    name = "load_breast_cancer_wisconsin"
    _check_choice(name, "missing", missing, ("drop", "nan"))
    header, rows = _read("breast_cancer_wisconsin.csv")
    if missing == "drop":
        rows = [row for row in rows if "" not in row]
    target_names, y = np.unique([row[-1] for row in rows], return_inverse=True)
    return _pack(
        name,
        X=np.array(
            [[cell or "nan" for cell in row[3:-1]] for row in rows], dtype=float
        ),
        y=y.astype(np.int64),
        feature_names=header[3:-1],
        target_names=target_names,
        groups=np.array([row[1] for row in rows], dtype=np.int64),
        descr=_WISCONSIN_DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _check_choice(function, argument, value, choices):
    if value not in choices:
        allowed = " or ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"{function}: {argument}={value!r} is not known; use {allowed}"
        )


def _read(name):
    """Header and rows of a bundled CSV file."""
    file = resources.files("maxent.datasets").joinpath("data", name)
    with file.open("r", encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


def _pack(
    function,
    *,
    X,
    y,
    feature_names,
    target_names,
    groups,
    descr,
    return_X_y,
    as_frame,
):
    frame = None
    if as_frame:
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                f"{function}: as_frame=True needs pandas, which is not installed; "
                "install it or use as_frame=False"
            ) from None
        frame = pd.DataFrame(X, columns=feature_names)
        frame["target"] = y
        X, y = frame[feature_names], frame["target"]
    if return_X_y:
        return X, y

    from sklearn.utils import Bunch

    return Bunch(
        data=X,
        target=y,
        frame=frame,
        target_names=target_names,
        feature_names=feature_names,
        groups=groups,
        DESCR=descr,
    )
