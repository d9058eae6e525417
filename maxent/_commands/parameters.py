"""Parameters of the estimators that ``maxent fit`` trains, and which options set them.

Classes are imported when they are asked for: the help of one estimator, and fits.
"""

import inspect

from maxent._commands.catalog import KERNEL, MIXTURE, SEQUENCES, TABLES
from maxent._commands.options import OPTIONS
from maxent._support.registry import CLASSES, VALUES, resolve

__all__ = ["applicable", "class_of", "parameters", "parts", "rest"]

REQUIRED = inspect.Parameter.empty
# Options that choose among classes, or reach models inside the kernel of sequences.
_CHOICES = {
    ("tables", "partial"): ("machine",),
    ("sequences", "classifier"): (
        *("sequence_model", "n_states", "n_init", "em_tol", "order", "smoothing"),
        *("alphabet", "unknown"),
    ),
}
_IN_FIT = ("alphabet", "random_state")  # whose default the command sets
# Parameters that the command sets itself, or that are no texts or numbers, and those
# that have no meaning for a kernel between sequences.
_INSIDE = ("verbose", "kernel", "estimator", "model_params", "loss_matrix", "emission")
_OF_OTHERS = {"sequences": ("gamma", "degree", "coef0", "outlier_model")}


def class_of(spec):
    """The class of an estimator, or of a value inside one."""
    name = spec.class_name
    return resolve(CLASSES[name] if name in CLASSES else VALUES[name])


def parameters(spec):
    """Parameters by name, with the defaults of the command; `REQUIRED` for none."""
    known = inspect.signature(class_of(spec)).parameters
    return {name: p.default for name, p in known.items()} | dict(spec.defaults)


def parts(name, kind, machine="classifier"):
    """Specs of an estimator and of what is inside it.

    Parameters
    ----------
    name : str
        Of the estimator.
    kind : {"tables", "sequences"}
    machine : str, default="classifier"
        The machine that partial trains.
    """
    if kind == "sequences":
        inside = [KERNEL] if name == "classifier" else []
        return [SEQUENCES[name], *inside]
    inside = {"partial": [TABLES[machine]], "outliers": [MIXTURE]}
    return [TABLES[name], *inside.get(name, [])]


def kinds_of(name):
    """Kinds of data that an estimator of this name is for."""
    known = {"tables": TABLES, "sequences": SEQUENCES}
    return [kind for kind, catalog in known.items() if name in catalog]


def applicable(name):
    """Options that set a parameter of an estimator: destination -> defaults by kind.

    A default is None where only the text of the option says it.
    """
    found = {}
    for kind in kinds_of(name):
        for dest in _CHOICES.get((kind, name), ()):
            found.setdefault(dest, {})[kind] = None
        for spec in parts(name, kind):
            known = parameters(spec)
            for dest, option in OPTIONS.items():
                param = next((p for p in option.params if p in known), None)
                if param is not None and dest not in spec.foreign:
                    own = None if param in _IN_FIT else known[param]
                    found.setdefault(dest, {}).setdefault(kind, own)
    return found


def rest(name):
    """Parameters that only ``--set`` reaches, with their defaults."""
    by_option = {param for option in OPTIONS.values() for param in option.params}
    found = {}
    for kind in kinds_of(name):
        for spec in parts(name, kind):
            own = {*spec.foreign} - {*_OF_OTHERS.get(kind, ()), *MIXTURE.foreign}
            for param, default in parameters(spec).items():
                if (param in own or param not in by_option) and param not in _INSIDE:
                    found.setdefault(param, default)
    return found
