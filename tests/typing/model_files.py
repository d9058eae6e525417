"""Model files, data sets in every form, and the command from Python."""

from __future__ import annotations

import tempfile
from pathlib import Path

import maxent
from maxent.cli import main
from maxent.datasets import load_breast_cancer_wisconsin, load_crabs

crabs = load_crabs(target="species")
model = maxent.MEDClassifier(C=10.0).fit(crabs.data, crabs.target)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "crabs.npz"
    maxent.save(model, path, extra={"names": list(crabs.feature_names)})
    again = maxent.load(str(path))
    print((again.predict(crabs.data) == crabs.target).mean())
    code: int = main(["info", str(path)])
print(code)

X, y = load_breast_cancer_wisconsin(missing="nan", return_X_y=True)
print(X.shape, y.sum())
