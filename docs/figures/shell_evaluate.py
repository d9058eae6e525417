"""The picture of ``maxent evaluate --plot``, of crabs that training has not seen."""

import csv
import os
import tempfile

import matplotlib.pyplot as plt

from maxent.cli import main
from maxent.datasets import load_crabs

crabs = load_crabs()
rows = [[crabs.target_names[k], *x] for k, x in zip(crabs.target, crabs.data.tolist())]
with tempfile.TemporaryDirectory() as folder:
    train, test, model, picture = (
        os.path.join(folder, name)
        for name in ("train.csv", "test.csv", "model.npz", "test.png")
    )
    for path, part in ((train, rows[::2]), (test, rows[1::2])):
        with open(path, "w", newline="") as stream:
            csv.writer(stream).writerows([["sex", *crabs.feature_names], *part])
    options = ["--label", "sex", "--standardize", "--probability", "-q"]
    main(["fit", train, model, *options])
    main(["evaluate", model, test, "--plot", picture, "-q"])
    image = plt.imread(picture)

figure = plt.figure(figsize=(13.2, 4.5), dpi=100)
axes = figure.add_axes((0, 0, 1, 0.93))
axes.set_title("maxent evaluate model.npz test.csv --plot test.png", family="monospace")
axes.imshow(image)
axes.set_axis_off()
plt.show()
