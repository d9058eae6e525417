"""
Twenty rows to look at
======================

A clerk has time for twenty of a thousand payments. The command ``maxent`` learns what
is usual from all of them, without a label, lists the least usual first, and says by
which columns.
"""

import csv
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

folder = tempfile.TemporaryDirectory()


def run(line, head=None):
    """Run a line as a shell would, and print what it prints, or its first lines."""
    print(f"$ {line}")
    words = [sys.executable, "-m", *shlex.split(line)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(words, cwd=folder.name, text=True, check=True, **both)
    print(*done.stdout.splitlines()[:head], "", sep="\n")
    return done.stdout


rng = np.random.default_rng(5)
n = 1000
hours = rng.gamma(9, 0.9, n)
table = np.column_stack(
    [
        hours,
        42 * hours * rng.lognormal(0, 0.08, n),
        3 + 0.4 * hours + rng.normal(0, 0.5, n),
    ]
)
wrong = rng.choice(n, 12, replace=False)
table[wrong[:6], 1] *= 1.4  # too much for the hours
table[wrong[6:], 2] += 2  # more parts than the hours explain
known = np.zeros(n, int)
known[wrong] = 1
with open(Path(folder.name) / "payments.csv", "w", newline="") as stream:
    out = csv.writer(stream)
    out.writerow(["number", "hours", "amount", "parts"])
    out.writerows([f"P{i:04}", *row] for i, row in enumerate(table.round(2).tolist()))
with open(Path(folder.name) / "audited.csv", "w", newline="") as stream:
    out = csv.writer(stream)
    out.writerow(["number", "hours", "amount", "parts", "wrong"])
    for i, row in enumerate(table.round(2).tolist()):
        out.writerow([f"P{i:04}", *row, known[i]])

# %%
# What is usual? Two in a hundred payments may be called unusual.

run(
    "maxent fit payments.csv usual.npz --estimator outliers --contamination 0.02 "
    "--id number"
)

# %%
# The twenty rows of the lowest scores, whatever the threshold, with their reasons.

run("maxent predict usual.npz payments.csv --top 20 --explain --id number -o look.csv")
print(*(Path(folder.name) / "look.csv").read_text().splitlines()[:7], sep="\n")

# %%
# A year later all have been audited. The same command tells what the list was worth.

run("maxent evaluate usual.npz audited.csv --label wrong --top 20")

# %%
# Amounts by hours, with the list and what the audit found.

with open(Path(folder.name) / "look.csv", newline="") as stream:
    listed = [int(row["number"][1:]) for row in csv.DictReader(stream)]
figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), sharex=True, layout="constrained")
for ax, column, name in ((axes[0], 1, "amount"), (axes[1], 2, "parts")):
    ax.plot(table[:, 0], table[:, column], ".", color="0.75", ms=3, label="payments")
    ax.plot(
        *table[listed][:, [0, column]].T,
        "o",
        mfc="none",
        mec="#35618f",
        ms=8,
        label="on the list",
    )
    ax.plot(*table[wrong][:, [0, column]].T, "x", color="#b3261e", ms=5, label="wrong")
    ax.set(xlabel="hours", ylabel=name)
axes[0].legend()
plt.show()
folder.cleanup()
