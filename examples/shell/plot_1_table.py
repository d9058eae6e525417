"""
From a table to predictions
===========================

Measurements of crabs, of which some have been sexed. The command ``maxent`` compares
estimators, fits one, judges it on rows it has not seen, and predicts the rest.
"""

import csv
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from maxent.datasets import load_crabs

folder = tempfile.TemporaryDirectory()


def run(line):
    """Run a line as a shell would, and print what it prints."""
    print(f"$ {line}")
    words = [sys.executable, "-m", *shlex.split(line)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(words, cwd=folder.name, text=True, check=True, **both)
    print(done.stdout)


crabs = load_crabs()
rows = [[*x, crabs.target_names[k]] for x, k in zip(crabs.data.tolist(), crabs.target)]
order = np.random.default_rng(0).permutation(len(rows))
parts = {"train.csv": order[:100], "test.csv": order[100:160], "new.csv": order[160:]}
for name, part in parts.items():
    with open(Path(folder.name) / name, "w", newline="") as stream:
        known = None if name != "new.csv" else -1  # the new ones have no sex yet
        table = [[*crabs.feature_names, "sex"], *(rows[i] for i in part)]
        csv.writer(stream).writerows(row[:known] for row in table)

# %%
# Which estimator? All see the same folds; a score comes with how far it is behind the
# best.

run("maxent compare train.csv --label sex --standardize --cv 4")

# %%
# The best of them. The fit prints its certificate, and ``evaluate`` error bars for what
# it says.

run("maxent fit train.csv model.npz --label sex --estimator gaussian")
run("maxent evaluate model.npz test.csv --plot test.png")

# %%
# The picture that ``--plot`` has written: rows by true and predicted class, and the ROC
# curve.

image = plt.imread(Path(folder.name) / "test.png")
height, width = (size / 150 for size in image.shape[:2])  # inches
figure = plt.figure(figsize=(width, height + 0.3), dpi=100, layout="none")
axes = figure.add_axes((0, 0, 1, height / (height + 0.3)))
axes.set_title("test.png", family="monospace")
axes.imshow(image)
axes.set_axis_off()
plt.show()

# %%
# The crabs that nobody has sexed.

run("maxent predict model.npz new.csv -o found.csv")
for line in (Path(folder.name) / "found.csv").read_text().splitlines()[:5]:
    print(line)
folder.cleanup()
