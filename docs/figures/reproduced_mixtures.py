"""Divergences of maximum likelihood minus those of latent maximum entropy."""

import csv
import pathlib

import matplotlib.pyplot as plt
import numpy as np

# a page runs this in its folder, and without a name of the file
here = pathlib.Path(globals().get("__file__", "figure")).resolve().parent
folder = here.parent / "reproductions"
with open(folder / "latent_gaussians.csv", encoding="utf-8", newline="") as stream:
    rows = list(csv.DictReader(stream))

gains = {}
for row in rows:
    cells = [row[f"{choice} divergence"] for choice in ("likelihood", "entropy")]
    if all(cells):
        gain = float(cells[0]) - float(cells[1])
        gains.setdefault((row["scenario"], int(row["size"])), []).append(gain)

names = {
    "1": "three Gaussians (1)",
    "4": "three Gaussians (4)",
    "2": "five Gaussians (2)",
}
names |= {"3": "three Laplacians (3)", "3r": "three Laplacians, with a prior"}
sizes = sorted({size for _, size in gains})
figure, ax = plt.subplots(figsize=(7, 3.6))
for k, (scenario, name) in enumerate(names.items()):
    own = [np.array(gains[scenario, size]) for size in sizes]
    mean = [gain.mean() for gain in own]
    error = [gain.std(ddof=1) / np.sqrt(len(gain)) for gain in own]
    x = np.array(sizes) * (1 + 0.04 * (k - 2))
    ax.errorbar(x, mean, error, marker="o", ms=3, lw=1, capsize=2, label=name)
ax.axhline(0, color="k", lw=0.8)
ax.set(xscale="log", xlabel="rows", ylabel="KL of MLE minus KL of LME, nats")
ax.set_yscale("symlog", linthresh=0.01)
ax.legend(fontsize=8, frameon=False)
figure.tight_layout()
plt.show()
