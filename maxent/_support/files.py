"""Files read whole, and files that appear complete or not at all."""

import contextlib
import gzip
import os
import secrets
import stat
import sys
import zlib

__all__ = ["STANDARD_INPUT", "read_bytes", "whole_file"]

STANDARD_INPUT = "-"  # the name that stands for it on command lines
_GZIP = b"\x1f\x8b"


def read_bytes(path):
    """The contents of a file, decompressed if it is a gzip file.

    Parameters
    ----------
    path : str or path-like
        "-" is standard input.

    Returns
    -------
    name : str
        How messages call the file.
    data : bytes

    Raises
    ------
    ValueError
        If the compressed data are damaged, or standard input is closed.
    OSError
        If the file cannot be read.
    """
    name = os.fspath(path)
    if name == STANDARD_INPUT:
        name = "standard input"
        if sys.stdin is None or sys.stdin.closed:
            raise ValueError("standard input is closed; name a data file")
        data = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as stream:
            data = stream.read()
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(
                f"{name}: damaged or cut short gzip data ({error})"
            ) from None
    return name, data


@contextlib.contextmanager
def whole_file(path, mode="wb", **kwargs):
    """Open a file for writing that appears under its name complete or not at all.

    The contents go to a new file in the same folder, which is flushed to disk and
    renamed over `path` at the end; on any failure the new file is removed and `path`
    stays as it was.  Pipes and devices are written directly.  Access rights of an
    existing file are kept.  Errors of the system name the file.

    Parameters
    ----------
    path : str or path-like
    mode : {"wb", "w"}, default="wb"
    **kwargs
        Passed on to `open` (encoding, newline).
    """
    try:
        with _whole_file(path, mode, **kwargs) as stream:
            yield stream
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def _whole_file(path, mode, **kwargs):
    target = os.path.realpath(os.fspath(path))
    rights = None
    with contextlib.suppress(FileNotFoundError):
        rights = os.stat(target).st_mode
    if rights is not None and stat.S_ISDIR(rights):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder; name a file in it")
    if rights is not None and not stat.S_ISREG(rights):
        with open(target, mode, **kwargs) as stream:
            yield stream
        return
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:50]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        fault = "takes no new files; name another"
        if not os.path.isdir(folder):
            fault = "does not exist; create it first"
        raise FileNotFoundError(
            f"cannot write {os.fspath(path)}: the folder {folder} {fault}"
        ) from None
    try:
        with open(handle, mode, **kwargs) as stream:
            if rights is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), stat.S_IMODE(rights))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder):
    """Make the renaming itself durable, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
