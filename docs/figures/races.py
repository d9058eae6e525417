"""Every race of the performance page: our time over that of the peer, by group."""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

GROUPS = {
    "kernel machines": ("kernel",),
    "linear machines": ("linear_sparse", "linear_dense"),
    "several classes": ("multiclass", "multiclass_letters"),
    "small fits, searches, files": ("waiting",),
    "first page": ("first_page",),
    "prediction, Gram matrices": ("predict", "gram"),
    "product kernels, dynamics": ("product_kernels", "dynamics", "sequences"),
    "maximum entropy": ("latent",),
    "EM and mixtures": ("em", "mixture_fits"),
    "hmmlearn's gallery, decoding": ("hmmlearn_examples", "decoding"),
    "state space": ("state_space",),
}
here = Path(globals().get("__file__", "figure")).resolve().parent
folder = here.parent / "performance"


def ratios(name):
    """Ratios of a table, without rows that have no peer."""
    text = (folder / f"{name}.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    cells = [row["ratio"].partition("(")[0].strip(" *–") for row in rows]
    return [max(float(cell), 0.003) for cell in cells if cell]  # least that is printed


rng = np.random.default_rng(0)
figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
for place, names in enumerate(GROUPS.values()):
    found = np.array([ratio for name in names for ratio in ratios(name)])
    height = place + rng.uniform(-0.28, 0.28, size=len(found))
    colour = np.where(found <= 1.0, "#0072b2", "#d55e00")
    axes.scatter(found, height, s=11, c=colour, alpha=0.75, lw=0)
    middle = np.exp(np.log(found).mean())
    axes.plot([middle, middle], [place - 0.4, place + 0.4], c="0.2", lw=1.2)
axes.axvline(1.0, c="0.5", lw=0.8, ls="--")
axes.set_xscale("log")
axes.set(xlabel="our time / time of the peer", ylim=(len(GROUPS) - 0.4, -0.6))
axes.set_yticks(range(len(GROUPS)), labels=GROUPS)
axes.grid(axis="x", lw=0.4)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
