"""``maxent demo outliers``: crabs that are none, found by densities of one class."""

import time

import numpy as np

from maxent._commands.demos._drawing import Demo
from maxent._commands.reports import table
from maxent._support.results import gap_text

__all__ = ["run_demo"]

_SHARE = 0.05  # of the training rows, called outliers


def run_demo(seed):
    """Train detectors on crabs only and tell."""
    train, test, false = _rows(seed)
    rows, models, converged = [], {}, True
    for name in ("gaussian", "mixture"):
        row, models[name] = _trained(name, train, test, false)
        rows.append(row)
        converged &= bool(models[name].converged_)
    text = (
        f"Detectors of outliers fitted to {len(train)} Leptograpsus crabs, "
        f"{_SHARE:.0%} of which they call\n"
        f"outliers, and tried on {len(test)} other crabs and {len(false)} made ones: "
        f"measurements of different\ncrabs mixed (seed {seed}).\n\n"
        f"{table(rows)}\n"
        "Every measurement of a made crab is that of a crab; only their relations are\n"
        "wrong. The duality gap bounds how far a density is from the best one.\n"
    )
    return Demo(text, converged, lambda figure: _paint(figure, models, test, false))


def _rows(seed):
    """Crabs to train and to test, and made ones, on the scale of the first."""
    from maxent.datasets import load_crabs

    rng = np.random.default_rng(seed)
    X = load_crabs().data
    order = rng.permutation(len(X))
    train, test = X[order[:120]], X[order[120:]]
    false = np.column_stack([rng.permutation(column) for column in test.T])
    mean, scale = train.mean(axis=0), train.std(axis=0)
    return tuple((part - mean) / scale for part in (train, test, false))


def _trained(name, train, test, false):
    from maxent.discrimination import MEDOutlierDetector

    start = time.perf_counter()
    model = MEDOutlierDetector(name, contamination=_SHARE).fit(train)
    seconds = time.perf_counter() - start
    alarms, found = (int(np.sum(model.predict(part) == -1)) for part in (test, false))
    return {
        "model": name,
        "made crabs found": f"{found} of {len(false)}",
        "false alarms": f"{alarms} of {len(test)}",
        "support": len(model.support_),
        "duality gap": gap_text(model.duality_gap_, model.objective_),
        "time": f"{seconds:.2f} s",
    }, model


def _paint(figure, models, test, false):
    from maxent.displays import LogLikelihoodDisplay

    for axes, (name, model) in zip(figure.subplots(1, len(models)), models.items()):
        scores = {
            "crabs": model.score_samples(test),
            "made crabs": np.maximum(model.score_samples(false), -60.0),
        }
        LogLikelihoodDisplay.from_scores(scores, level=float(model.offset_), ax=axes)
        axes.set(title=f"{name}, cut at -60")
