"""Model files: arrays and JSON in one .npz, checksummed, versioned, without pickle.

A file holds an estimator, or a value: a family, a model, a prior.

A model file is an uncompressed zip of ``.npy`` members, so ``numpy.load`` opens it too:

    metadata    uint8   JSON in ASCII: format, versions, class, parameters, fitted state
    checksum    uint8   the 32 bytes of a SHA-256 over the metadata and every array
    a0, a1 ...          the arrays, named in the metadata in the order of writing

The checksum finds damage, not malice: whoever can change the file can recompute it.
Nothing here makes an estimator or a value of what it reads.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from maxent._persistence.archive import (
    ModelFileError,
    checksum,
    members_of,
    read_array,
    write_arrays,
)
from maxent._persistence.encoding import Decoder, Encoder
from maxent._support import validation as v
from maxent._support.files import whole_file
from maxent._support.registry import CLASSES, VALUES, resolve
from maxent._support.typing import PathLike
from maxent._version import __version__

__all__ = [
    "FITTED_NAME",
    "FORMAT_VERSION",
    "ModelFile",
    "check_path",
    "read_model",
    "write_model",
]

FORMAT = "maxent-model"
FORMAT_VERSION = 1

MAX_METADATA_BYTES = 64 * 2**20

FITTED_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*_\Z")


@dataclass(frozen=True)
class ModelFile:
    """Contents of a model file whose checksum agreed, before any class is made.

    Attributes
    ----------
    class_name : str
        A key of the registry `CLASSES`, or of `VALUES`.
    format_version : int
    maxent_version : str
        Version of the package that wrote the file.
    params, fitted, extra : dict
        Constructor parameters, fitted attributes and the writer's own additions; of a
        value its specification, and nothing. Values inside, such as priors, appear as
        their specifications, dicts.
    checksum : str
        SHA-256 in hexadecimal.
    sklearn_version : str or None
        Of scikit-learn, if the file has transformers of it.
    """

    class_name: str
    format_version: int
    maxent_version: str
    params: dict[str, Any]
    fitted: dict[str, Any]
    extra: dict[str, Any]
    checksum: str
    sklearn_version: str | None = None


def write_model(
    path: PathLike,
    class_name: str,
    params: dict[str, Any],
    fitted: dict[str, Any],
    extra: dict[str, Any],
    encoder: Encoder,
    sklearn_version: str | None = None,
) -> None:
    """Write what a :class:`ModelFile` holds, whole or not at all.

    Parameters
    ----------
    path : str or path-like
    class_name : str
    params, fitted, extra : dict
        Of the class, as in :class:`ModelFile`.
    encoder : Encoder
        Without arrays yet: those of the file are added.
    sklearn_version : str, optional
        If transformers of scikit-learn are inside.
    """
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "maxent_version": __version__,
        "class": class_name,
        "params": encoder.mapping(params, f"parameter {{}} of {class_name}"),
        "fitted": encoder.mapping(fitted, f"attribute {{}} of {class_name}"),
        "extra": encoder.mapping(extra, "extra entry {}"),
        "arrays": list(encoder.arrays),
    }
    if sklearn_version is not None:
        metadata["sklearn_version"] = sklearn_version
    text = json.dumps(metadata, allow_nan=False, separators=(",", ":"))
    if len(text) > MAX_METADATA_BYTES:
        raise ValueError(
            f"cannot save {class_name}: its settings and lists take {len(text)} bytes "
            f"as text, more than {MAX_METADATA_BYTES}; store long lists as arrays"
        )
    members = {"metadata": np.frombuffer(text.encode("ascii"), dtype=np.uint8)}
    members.update(encoder.arrays)
    digest = checksum(members)
    members["checksum"] = np.frombuffer(digest, dtype=np.uint8)
    with whole_file(path) as stream:
        write_arrays(stream, members)


def check_path(path: object) -> None:
    """Refuse what is no path, before anything is written or read."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path={v.shown(path)} must be the path of a model file, a str or "
            "path-like, such as 'model.npz'"
        )


def read_model(
    path: PathLike,
    *,
    make: Callable[[str, Any], Any] = lambda name, spec: spec,
    make_estimator: Callable[..., Any] = lambda name, params, fitted: {
        "class": name,
        "params": params,
        "fitted": fitted,
    },
) -> ModelFile:
    """Read and check a model file without making its estimator.

    Parameters
    ----------
    path : str or path-like
    make : callable(name, spec), optional
        What becomes of the class name and the specification of a value; the
        specification, by default.
    make_estimator : callable(name, params, fitted), optional
        What becomes of an estimator inside another, as in a pipeline; a dict, by
        default.

    Returns
    -------
    model : ModelFile

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, names an unknown class or comes
        from a newer version of the format.
    """
    check_path(path)
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait
        raise ModelFileError(f"{name}: not a model file, but a folder, pipe or device")
    with open(path, "rb") as stream:
        try:
            return _read_archive(stream, make, make_estimator)
        except ModelFileError as error:
            raise ModelFileError(f"{name}: {error}") from None
        except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
            raise ModelFileError(
                f"{name}: not a model file, or cut short or damaged "
                f"({str(error) or 'unexpected end'})"
            ) from None
        except Exception as error:  # a hostile file may fail anywhere below
            raise ModelFileError(
                f"{name}: the contents are damaged ({type(error).__name__}: {error})"
            ) from error


def _read_archive(
    stream: BinaryIO,
    make: Callable[[str, Any], Any],
    make_estimator: Callable[..., Any],
) -> ModelFile:
    metadata, arrays, digest = _checked_members(stream)
    class_name = metadata["class"]
    if class_name not in CLASSES and class_name not in VALUES:
        raise ModelFileError(
            f"it holds the class {class_name!r}, which maxent {__version__} does "
            f"not load; known are {', '.join(sorted([*CLASSES, *VALUES]))}"
        )
    decoder = Decoder(arrays, make, make_estimator, _class_of)
    model = ModelFile(
        class_name=class_name,
        format_version=metadata["format_version"],
        maxent_version=str(metadata["maxent_version"]),
        params=decoder.mapping(metadata["params"]),
        fitted=decoder.mapping(metadata["fitted"]),
        extra=decoder.mapping(metadata["extra"]),
        checksum=digest.hex(),
        sklearn_version=metadata.get("sklearn_version"),
    )
    for name in model.fitted:
        if not FITTED_NAME.match(name):
            raise ModelFileError(f"{name!r} is not the name of a fitted attribute")
    return model


def _class_of(name: str) -> type[Any]:
    """The class of values of this name."""
    return resolve(VALUES[name])


def _checked_members(
    stream: BinaryIO,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], bytes]:
    """Metadata, arrays by name and checksum of an archive, which agree."""
    size = os.fstat(stream.fileno()).st_size
    with zipfile.ZipFile(stream) as archive:
        infos = members_of(archive, size)
        metadata = _metadata(archive, infos)
        names = metadata["arrays"]
        if sorted(infos) != sorted([*names, "metadata", "checksum"]):
            raise ModelFileError("arrays are missing, or there are too many")
        members = {
            name: read_array(archive, infos[name], name)
            for name in ["metadata", *names, "checksum"]
        }
    stored = members.pop("checksum").tobytes()
    if stored != checksum(members):
        raise ModelFileError(
            "the checksum does not agree with the contents; the file was changed or "
            "damaged after it was written"
        )
    return metadata, members, stored


def _metadata(
    archive: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    if infos["metadata"].file_size > MAX_METADATA_BYTES + 1024:
        raise ModelFileError("its metadata are too large")
    array = read_array(archive, infos["metadata"], "metadata")
    metadata = json.loads(array.tobytes().decode("ascii"), parse_constant=_no_constant)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError("an archive of arrays, but not a model file of maxent")
    version = metadata["format_version"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"format version {version!r} is not a positive integer")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"written in format {version} by maxent {metadata.get('maxent_version')}; "
            f"maxent {__version__} reads formats up to {FORMAT_VERSION}, upgrade "
            "it"
        )
    return metadata


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"unexpected {token} in the metadata")
