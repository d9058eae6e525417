"""What every benchmark measures: time, peak memory, and whether the result changed.

`Measured` is the one base: a subclass says how to make its data and how to do the work,
and gets ``time_work``, ``peakmem_work`` and ``track_fingerprint``. `Fitted` is a
`Measured` whose work is the fit of an estimator; it adds ``time_predict`` and
``track_score``.

The fingerprint belongs to the optimum, not to the path to it: the work is done again at
a tolerance of 1e-7, which settles the five digits that are kept. A faster solver leaves
it alone; a wrong one moves it.

Environment: ``MAXENT_BENCH=full`` adds the long sizes.
"""

import os
import zlib
from abc import ABC, abstractmethod

import numpy as np

FULL = os.environ.get("MAXENT_BENCH", "fast") == "full"


def profile(fast, full=()):
    """Parameter values of this run: the fast ones, and the long ones if asked for."""
    return [*fast, *(full if FULL else ())]


def fingerprint(value):
    """A power of two that depends on the first five digits of a number.

    Comparisons of runs look at ratios: a plain objective could change by some per
    cent unseen, while two different fingerprints differ by a factor of two at least
    (or, one time in 61, not at all).
    """
    if not np.isfinite(value):
        return float("nan")
    return float(2.0 ** (zlib.crc32(f"{value:.4e}".encode()) % 61))


class Measured(ABC):
    """Time, peak memory and fingerprint of some work.

    Subclasses may define `params` and `param_names`; their values reach `data`.
    """

    timeout = 600
    unit = "power of two"

    @abstractmethod
    def data(self, *params):
        """Make the data; sets attributes."""

    @abstractmethod
    def work(self, tol=None):
        """Do the work on the data, at the usual tolerance or the one given."""

    @abstractmethod
    def objective(self, result):
        """Number that characterises the result of `work`."""

    def setup(self, *params):
        """Run before every measurement, untimed."""
        self.data(*params)

    def time_work(self, *params):
        """Seconds for the work."""
        self.work()

    def peakmem_work(self, *params):
        """Peak memory of a process that makes the data and does the work."""
        self.work()

    def track_fingerprint(self, *params):
        """Changes if, and as good as only if, the optimum changes."""
        return fingerprint(self.objective(self.work(tol=1e-7)))


class Fitted(Measured):
    """An estimator: `data` sets X, y, X_test, y_test; `estimator` makes it."""

    @abstractmethod
    def estimator(self):
        """The estimator, not fitted."""

    def setup(self, *params):
        """Data and a fitted estimator."""
        super().setup(*params)
        self.fitted = self.work()

    def work(self, tol=None):
        """Fit."""
        estimator = self.estimator()
        if tol is not None:
            estimator.set_params(tol=tol)
        return estimator.fit(self.X, self.y)

    def objective(self, result):
        """The dual objective."""
        return result.objective_

    def time_predict(self, *params):
        """Seconds to predict the test rows."""
        self.fitted.predict(self.X_test)

    def track_score(self, *params):
        """Score on the test rows."""
        return float(self.fitted.score(self.X_test, self.y_test))

    track_score.unit = "accuracy or R2"
