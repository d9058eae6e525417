"""Estimators to save, and files changed behind the back of their checksum."""

import json
import math
import zipfile

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from maxent._persistence.archive import checksum

STUB = f"{__name__}:Stub"  # for the registry of classes


class Stub(BaseEstimator):
    """An estimator that stores whatever it is given."""

    def __init__(self, kernel="rbf", C=1.0, margin="exponential"):
        self.kernel = kernel
        self.C = C
        self.margin = margin

    def fit(self, **state):
        self.n_features_in_ = 3
        for name, value in state.items():
            setattr(self, name, value)
        return self


class Derived(Stub):
    pass


def same(a, b):
    """Equal to the bit, in type, dtype and shape too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return a.tolist() == b.tolist()
        return a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if sparse.issparse(a):
        return a.shape == b.shape and all(
            same(getattr(a, n), getattr(b, n)) for n in ("data", "indices", "indptr")
        )
    if isinstance(a, (float, np.floating)):
        return (a != a and b != b) or repr(a) == repr(b)
    return a == b


def rewrite(path, change):
    """Rewrite the archive with members changed: its own sums of bytes agree again."""
    with zipfile.ZipFile(path) as archive:
        members = {i.filename: archive.read(i) for i in archive.infolist()}
    members = change(members) or members
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def resign(path, change):
    """Change the decoded members and recompute the checksum, as an attacker would."""
    with np.load(path, allow_pickle=False) as archive:
        members = {name: archive[name] for name in archive.files}
    del members["checksum"]
    metadata = json.loads(members["metadata"].tobytes())
    change(metadata, members)
    text = json.dumps(metadata).encode()
    members["metadata"] = np.frombuffer(text, dtype=np.uint8)
    digest = checksum(members)
    np.savez(path, **members, checksum=np.frombuffer(digest, dtype=np.uint8))


def fitted(**state):
    defaults = {
        "coef_": np.arange(6.0).reshape(2, 3),
        "classes_": np.array(["no", "yes"], dtype=object),
        "converged_": True,
    }
    return Stub(kernel="linear", C=math.inf).fit(**(defaults | state))
