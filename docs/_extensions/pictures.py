"""Settings of every picture, those of the guide and those of the gallery."""

import matplotlib

SETTINGS = {
    "figure.figsize": (7.2, 3.2),
    "figure.constrained_layout.use": True,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "maxent",  # the same picture gives the same bytes
}


def apply_settings(gallery_conf, fname):
    """Give them to Matplotlib before a script of the gallery runs."""
    matplotlib.rcParams.update(SETTINGS)
