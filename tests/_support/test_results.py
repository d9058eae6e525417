"""Monitor of a solver loop, and the warning of a fit that did not converge."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxent._support.results import (
    DualResult,
    Monitor,
    Status,
    warn_not_converged,
)


def test_the_smallest_gap_is_the_best_point():
    seen = []
    monitor = Monitor(1e-3, lambda *entry: seen.append(entry))
    assert monitor.best is None and not monitor.converged
    assert not monitor.record(1, -np.inf, 0.0, "no objective")
    assert monitor.best is None
    assert not monitor.record(2, 1.0, 0.5, "first")
    assert not monitor.record(3, 1.0, 0.7, "worse")
    assert monitor.best.point == "first" and not monitor.converged
    assert monitor.record(4, 9.0, 0.01, "relative to the objective")
    assert monitor.best.point == "relative to the objective" and monitor.converged
    assert monitor.history == seen and [entry[0] for entry in seen] == [1, 2, 3, 4]


def test_both_tolerances_must_hold_at_the_best_point():
    monitor = Monitor(1e-3, kkt_tol=1e-2)
    assert not monitor.record(1, 1.0, 1e-9, "tiny gap", 0.05)
    assert monitor.best.point == "tiny gap" and not monitor.converged
    assert not monitor.record(2, 1.0, 1e-8, "nearer", 0.02)
    assert monitor.best.point == "nearer"
    assert not monitor.record(3, 1.0, 1e-2, "gap too large", 0.0)
    assert monitor.best.point == "nearer"
    assert monitor.record(4, 1.0, 1e-6, "both", 0.01)
    assert monitor.best.point == "both" and monitor.converged
    assert monitor.best.violation == 0.01


def test_a_point_within_tolerance_is_best_even_if_another_gap_is_smaller():
    # gap <= tol (1 + J): objectives differ
    monitor = Monitor(1e-3)
    assert not monitor.record(1, 0.0, 2e-3, "smaller gap")
    assert monitor.record(2, 9.0, 9e-3, "smaller relative gap")
    assert monitor.best.point == "smaller relative gap" and monitor.converged


def unfinished(**fields):
    return DualResult(np.zeros(1), 0.0, 9.0, 0.1, 7, Status.MAX_ITER, **fields)


def test_a_result_prints_its_certificate_only():
    assert repr(unfinished(solver="smo", coef=np.zeros(9))) == (
        "DualResult(status='max_iter', solver='smo', n=1, objective=9, gap=0.1, "
        "n_iter=7, converged=False)"
    )


@pytest.mark.parametrize(
    ("fields", "tol", "said", "unsaid"),
    [
        ({}, 1e-3, ["gap 1.00e-02 reached, tol=0.001 asked"], ["KKT"]),
        (
            {"kkt_violation": 0.25, "kkt_tol": 0.001},
            0.1,
            ["(KKT) violated by 2.50e-01, 0.001 asked"],
            ["gap"],
        ),
        (
            {"kkt_violation": 0.25, "kkt_tol": 0.001},
            1e-3,
            ["gap 1.00e-02 reached", "(KKT) violated by 2.50e-01"],
            [],
        ),
        ({"kkt_violation": 0.25}, 1e-3, ["gap 1.00e-02 reached"], ["KKT"]),
        (
            {"kkt_violation": 1e-4, "kkt_tol": 0.001},
            1e-3,
            ["gap 1.00e-02 reached"],
            ["KKT"],
        ),
    ],
)
def test_the_warning_names_the_measure_that_failed(fields, tol, said, unsaid):
    with pytest.warns(ConvergenceWarning) as caught:
        warn_not_converged("Machine", unfinished(**fields), tol, 7)
    message = str(caught[0].message)
    assert message.startswith("Machine stopped with status 'max_iter' after 7")
    for text in said:
        assert text in message
    for text in unsaid:
        assert text not in message
