"""
A motif in FASTA files
======================

One file of sequences to which a protein binds, one of others. Something short, at an
unknown place, tells them apart: the command ``maxent`` finds it, and its places in
other sequences.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import maxent
from maxent.datasets import make_planted_motifs
from maxent.displays import MotifLogoDisplay

folder = tempfile.TemporaryDirectory()


def run(line):
    """Run a line as a shell would, and print what it prints."""
    print(f"$ {line}")
    words = [sys.executable, "-m", *shlex.split(line)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(words, cwd=folder.name, text=True, check=True, **both)
    print(done.stdout)


strings, bound, *_ = make_planted_motifs(400, 60, 8, random_state=2)
for name, kind, part in (
    *(("bound.fa", 1, slice(200)), ("background.fa", 0, slice(200))),
    *(("new.fa", 1, slice(200, None)), ("other.fa", 0, slice(200, None))),
):
    own = [s for s, k in zip(strings[part], bound[part]) if k == kind]
    text = "".join(f">s{i}\n{s}\n" for i, s in enumerate(own))
    (Path(folder.name) / name).write_text(text)
print((Path(folder.name) / "bound.fa").read_text()[:128])

# %%
# A motif of eight letters, learnt from both files, and judged on sequences it has not
# seen.

run(
    "maxent fit bound.fa motif.npz --estimator motif --width 8 --negative background.fa"
)
run("maxent evaluate motif.npz new.fa --negative other.fa")

# %%
# The likeliest place in each new sequence, counted from 1.

run("maxent predict motif.npz new.fa --places -o places.csv")
for line in (Path(folder.name) / "places.csv").read_text().splitlines()[:5]:
    print(line)

# %%
# The model file opens in Python, too: here for the logo of the motif.

model = maxent.load(Path(folder.name) / "motif.npz")
figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
MotifLogoDisplay.from_estimator(model, ax=axes)
axes.set_title("the motif that tells the files apart")
plt.show()
folder.cleanup()
