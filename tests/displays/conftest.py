"""Matplotlib is optional; its figures are drawn without a window."""

import pytest


@pytest.fixture(autouse=True)
def pyplot():
    """Matplotlib without a window."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    return plt
