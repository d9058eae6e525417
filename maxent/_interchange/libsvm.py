"""Machines as model files of LIBSVM.

A file lists the classes and, class by class, the support vectors with one coefficient
for every other class:

    f_ij(x) = sum_(s of i) c_(j-1, s) k(s, x) + sum_(s of j) c_(i, s) k(s, x) - rho_ij

of classes i < j in the order of the file, which is i where f > 0. Ours are positive for
the later class of a pair, so classes are written in the reverse order.

Source: Chang & Lin (2011), LIBSVM: a library for support vector machines, and the
file `svm.cpp` of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._interchange.machines import Machine, machine_of
from maxent._support import validation as v
from maxent._support.files import whole_file
from maxent._support.typing import PathLike
from maxent.discrimination._one_vs_one import pairs_of

_TYPES = {"target": "epsilon_svr", "outliers": "one_class"}
_KERNELS = {"poly": "polynomial"}
_USED = {
    "poly": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}


def to_libsvm(estimator: Any, path: PathLike | None = None) -> str:
    """Write a kernel machine as a model file of LIBSVM.

    Parameters
    ----------
    estimator : estimator
        Fitted MEDClassifier, MEDRegressor, MEDFeatureSelector, MEDRegressionSelector,
        MaxEntClassifier, or MEDOutlierDetector with a GaussianScores model. Kernels are
        "linear", "rbf", "poly" and "sigmoid"; of three or more classes the machine is
        of pairs (multi_class="ovo"), or linear.
    path : str or path-like, optional
        Of a file to write, whole or not at all.

    Returns
    -------
    str
        The text of the file, numbers with all their digits. A linear machine has its
        weights in the place of support vectors. With margin="logistic" two classes have
        probabilities.

    Raises
    ------
    TypeError
        For another estimator.
    ValueError
        For other kernels, and for one kernel machine of three or more classes.

    See Also
    --------
    to_onnx : Machines and pipelines for other runtimes.
    maxent.save : Files of this package, which hold everything.

    Notes
    -----
    Labels of LIBSVM are integers; classes that are none are written as their places in
    `classes_`. What changed the features before the fit, such as a scaler, is not in
    the file. Where pairs of classes have equally many votes LIBSVM takes the class that
    it lists first, the last one of `classes_`.

    References
    ----------
    Chang & Lin (2011), LIBSVM: a library for support vector machines.

    Examples
    --------
    >>> import maxent
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [0, 0, 1]
    >>> model = maxent.MEDClassifier("linear", margin="hinge").fit(X, y)
    >>> print(maxent.to_libsvm(model).split("rho")[0], end="")
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 1
    """
    machine = machine_of(estimator)
    if machine.kind == "scores":
        machine = _scores_as_pairs(machine)
    text = _text(machine)
    if path is not None:
        with whole_file(path, "w", encoding="ascii", newline="\n") as stream:
            stream.write(text)
    return text


def _scores_as_pairs(machine):
    """Pairs of classes of a linear machine with a score for each class."""
    if machine.rows is not None:
        raise ValueError(
            "one machine of several classes has no form in LIBSVM, which votes among "
            "pairs; fit with multi_class='ovo'."
        )
    first, last = np.array(pairs_of(len(machine.classes))).T
    W, b = machine.weights, machine.bias
    return Machine(
        **{
            **vars(machine),
            "kind": "pairs",
            "weights": W[:, last] - W[:, first],
            "bias": b[last] - b[first],
        }
    )


def _text(machine: Machine) -> str:
    rows, weights, owner = machine.rows, machine.weights, machine.owner
    if rows is None:  # a row of weights for each output
        rows, weights = weights.T, np.eye(weights.shape[1])
        if machine.kind == "pairs":
            assert machine.classes is not None
            owner = np.array(pairs_of(len(machine.classes)))[:, 0]
    out = [
        f"svm_type {_TYPES.get(machine.kind, 'c_svc')}",
        f"kernel_type {_KERNELS.get(machine.kernel, machine.kernel)}",
    ]
    numbers = {"degree": machine.degree, "gamma": machine.gamma, "coef0": machine.coef0}
    out += [f"{n} {_number(numbers[n])}" for n in _USED.get(machine.kernel, ())]
    if machine.kind == "pairs":
        out += _several(machine, owner)
        order, weights = _by_class(machine, weights, owner)
        rows = rows[order]
    else:
        out += [f"nr_class 2\ntotal_sv {len(rows)}", f"rho {_number(-machine.bias[0])}"]
        if machine.kind == "two":
            order = np.argsort(weights[:, 0] <= 0, kind="stable")
            rows, weights = rows[order], weights[order]
            out += _two(machine, int((weights > 0).sum()), len(rows))
    out += ["SV"]
    out += [_line(w, row) for w, row in zip(weights, rows, strict=True)]
    return "\n".join(out) + "\n"


def _two(machine, positive, total):
    first, second = _labels(machine.classes)
    out = [f"label {second} {first}"]
    if machine.rate is not None:
        out += [f"probA {_number(-machine.rate)}", "probB 0"]
    return [*out, f"nr_sv {positive} {total - positive}"]


def _several(machine, owner):
    K = len(machine.classes)
    places = {pair: k for k, pair in enumerate(map(tuple, pairs_of(K)))}
    rho = [
        -machine.bias[places[j, i]]
        for i in range(K - 1, -1, -1)
        for j in range(i - 1, -1, -1)
    ]
    counts = np.bincount(owner, minlength=K)[::-1]
    return [
        f"nr_class {K}\ntotal_sv {len(owner)}",
        f"rho {' '.join(map(_number, rho))}",
        f"label {' '.join(map(str, _labels(machine.classes)[::-1]))}",
        f"nr_sv {' '.join(map(str, counts))}",
    ]


def _by_class(machine, weights, owner):
    """Rows by class, the last one first, and their coefficients with the others."""
    K = len(machine.classes)
    places = {pair: k for k, pair in enumerate(map(tuple, pairs_of(K)))}
    order = np.argsort(-owner, kind="stable")
    out = np.empty((len(owner), K - 1))
    for s, row in enumerate(order):
        c = int(owner[row])
        others = [o for o in range(K - 1, -1, -1) if o != c]
        out[s] = [weights[row, places[min(c, o), max(c, o)]] for o in others]
    return order, out


def _labels(classes):
    """Integers for the labels: their places if they are none."""
    if classes.dtype.kind in "iub":
        return [int(label) for label in classes]
    whole = classes.dtype.kind == "f" and (np.rint(classes) == classes).all()
    return [int(c) if whole else k for k, c in enumerate(classes)]


def _line(weights, row):
    cells = [f"{j + 1}:{_number(row[j])}" for j in np.flatnonzero(row)]
    return " ".join([*map(_number, weights), *cells])


def _number(x):
    return v.shown(int(x)) if float(x).is_integer() else f"{x:.17g}"
