"""Plugin of pytest: coverage.py learns which test runs, and how long each takes.

Coverage itself is started in every process by `sitecustomize`, see `coverage_map`.
"""

import json
import os
import pathlib
import time

import coverage
import pytest
from coverage_map import function_of

seconds: dict[str, float] = {}
failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    name = function_of(item.nodeid)
    coverage.Coverage.current().switch_context(name)
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start


def pytest_runtest_logreport(report):
    if report.failed:
        failed.add(function_of(report.nodeid))


def pytest_sessionfinish():
    found = {"seconds": seconds, "failed": sorted(failed)}
    path = pathlib.Path(os.environ["MAXENT_RECORD"])
    path.write_text(json.dumps(found), encoding="utf-8")
