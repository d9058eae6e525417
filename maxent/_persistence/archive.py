"""Arrays in an uncompressed zip: written in a fixed form, read with suspicion.

Whoever reads a model file may have been given it by anybody.  What reading can cost is
bounded by the size of the file before memory is taken, and nothing is unpickled.
"""

import hashlib
import json
import math
import zipfile

import numpy as np

from maxent._persistence.encoding import MAX_NDIM, is_portable

# Sizes of arrays are bounded by the file itself: members are stored uncompressed.
MAX_ARRAYS = 10_000

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # fixed: the same model gives the same bytes


class ModelFileError(ValueError):
    """A file is not a model file that this version can read."""


def write_arrays(stream, members):
    """Write arrays by name as uncompressed ``.npy`` members."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in members.items():
            info = zipfile.ZipInfo(name + ".npy", date_time=_ZIP_TIME)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def members_of(archive, size):
    """Members by name, with the checks that bound what reading can cost."""
    infos = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
        if not plain or info.compress_size != info.file_size:
            raise ModelFileError("it has compressed parts, which maxent never writes")
        if name in infos or name == info.filename:
            raise ModelFileError(f"unexpected part {info.filename[:60]!r}")
        infos[name] = info
    if len(infos) > MAX_ARRAYS + 2:
        raise ModelFileError(f"it has {len(infos)} parts; at most {MAX_ARRAYS} can be")
    if sum(info.file_size for info in infos.values()) > size:
        raise ModelFileError("its parts are larger than the file")
    if "metadata" not in infos or "checksum" not in infos:
        raise ModelFileError("an archive of arrays, but not a model file of maxent")
    return infos


def read_array(archive, info, name):
    """One array, with its dtype and size checked before memory is taken."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(member)
        else:
            raise ModelFileError(f"array {name!r} has an unknown header version")
        if dtype.hasobject:
            raise ModelFileError(
                f"array {name!r} holds Python objects, which are never read"
            )
        if not is_portable(dtype) or dtype.str.startswith(">"):
            raise ModelFileError(f"array {name!r} has the unexpected dtype {dtype}")
        if len(shape) > MAX_NDIM or any(n < 0 for n in shape):
            raise ModelFileError(f"array {name!r} has the impossible shape {shape}")
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise ModelFileError(
                f"array {name!r} does not have the size that its header says"
            )
        flat = np.empty(math.prod(shape), dtype=dtype)
        _read_into(member, _bytes_view(flat))
    return flat.reshape(shape, order="F" if fortran else "C")


def _read_into(member, view):
    buffer, start = memoryview(view), 0
    while start < len(buffer):
        count = member.readinto(buffer[start : start + 2**22])
        if not count:
            raise EOFError("unexpected end of an array")
        start += count
    if member.read(1):  # also makes zipfile compare its own checksum
        raise ModelFileError("an array is longer than it should be")


def checksum(members):
    """SHA-256 over name, dtype, shape, order and bytes of every array, in order."""
    sha = hashlib.sha256()
    for name, array in members.items():
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        head = json.dumps([name, array.dtype.str, array.shape, fortran])
        sha.update(f"{len(head)}:{head}".encode("ascii"))
        sha.update(_bytes_view(array))
    return sha.digest()


def _bytes_view(array):
    """The bytes of a contiguous array in memory order, without a copy."""
    flat = array.ravel(order="K")
    return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
