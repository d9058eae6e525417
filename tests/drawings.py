"""What the tests of displays share."""

import io

import numpy as np


def render(display):
    """Draw for real: missing glyphs and failed layouts become warnings, so errors."""
    stream = io.BytesIO()
    display.figure_.savefig(stream, format="png", dpi=40)
    assert len(stream.getvalue()) > 1000


def blobs(rng, n=80, classes=2):
    y = np.arange(n) % classes
    centres = np.array([[0.0, 0.0], [1.6, 0.5], [0.2, 2.2]])[:classes]
    return centres[y] + rng.normal(size=(n, 2)), np.array(["ant", "bee", "cat"])[y]
