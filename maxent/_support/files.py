"""Files read whole, and files that appear complete or not at all."""

import contextlib
import importlib
import io
import os
import re
import secrets
import stat
import sys

__all__ = [
    "STANDARD_INPUT",
    "decode_text",
    "is_missing",
    "plain_name",
    "read_bytes",
    "whole_file",
]

STANDARD_INPUT = "-"  # the name that stands for it on command lines
_MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "null"})
_OPEN_FOLDERS = ("/dev/fd", "/proc/self/fd")
_OPEN_NAMES = {"/dev/stdout": 1, "/dev/stderr": 2}
_PART = 1 << 24  # bytes that are read at a time
_BYTES_PER_CHARACTER = 8  # bytes, text, a buffer of four bytes each, and numbers
_SUFFIXES = (".gz", ".bz2", ".xz")
_PACKED = {  # first bytes: the module that unpacks the rest
    re.compile(rb"\x1f\x8b"): "gzip",
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): "bz2",
    re.compile(rb"\xfd7zXZ\x00"): "lzma",
}
_NO_TEXT = {  # first bytes: what the file is, and the remedy
    b"PK\x03\x04": "is a zip archive, such as an Excel workbook or a model file; save "
    "the table as CSV",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; unpack it first, as zstd -d does",
    b"PAR1": "is a Parquet file; save the table as CSV",
}


def read_bytes(path):
    """The contents of a file, unpacked if gzip, bzip2 or xz has packed it.

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
        data = _bounded(name, sys.stdin.buffer)
    else:
        with open(path, "rb") as stream:
            if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty():
                raise ValueError(f"{name} is a device, not a file; name a data file")
            data = _bounded(name, stream, first=os.fstat(stream.fileno()).st_size + 1)
    return name, _unpacked(name, data)


def _bounded(name, stream, packed="", first=0):
    """All bytes of a stream, which may be endless, unless they are too many.

    The `first` ones are read at once: those of a file of known size take no copy.
    """
    most = machine_memory() / _BYTES_PER_CHARACTER
    parts, size = [], 0
    while part := stream.read(_PART if parts else max(_PART, min(first, int(most)))):
        parts.append(part)
        size += len(part)
        if size > most:
            raise ValueError(
                f"{name} holds more than {most / 1e9:.3g} GB{packed}, and text is read "
                f"as a whole in {_BYTES_PER_CHARACTER} times its size, which is the "
                "memory of this machine; take a part of it"
            )
    return b"".join(parts)


def _unpacked(name, data):
    for start, module in _PACKED.items():
        if not start.match(data):
            continue
        kind = {"lzma": "xz", "bz2": "bzip2"}.get(module, module)
        try:
            with importlib.import_module(module).open(io.BytesIO(data)) as stream:
                return _bounded(name, stream, f" once {kind} has unpacked it")
        except (MemoryError, ValueError):
            raise
        except Exception as error:  # of one kind or another in every module
            raise ValueError(
                f"{name}: damaged or cut short {kind} data ({error})"
            ) from None
    return data


def plain_name(path):
    """The name of a file without the ending of its compression.

    >>> plain_name("a.csv.xz"), plain_name("a.csv")
    ('a.csv', 'a.csv')
    """
    name = os.fspath(path)
    return next((name[: -len(s)] for s in _SUFFIXES if name.lower().endswith(s)), name)


def is_missing(cell):
    """True if a cell stands for a missing value: empty, ?, NA, N/A, NaN or null.

    >>> is_missing(" ? "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in _MISSING_WORDS


def decode_text(name, data, encoding="utf-8"):
    """The text of a file without a byte-order mark.

    Parameters
    ----------
    name : str
        How messages call the file.
    data : bytes
    encoding : str, default="utf-8"
        Of Python's names.

    Raises
    ------
    ValueError
        If the data are not in the encoding: names the line, the byte and a remedy.
    """
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        for start, kind in _NO_TEXT.items():
            if data.startswith(start):
                raise ValueError(f"{name} {kind}") from None
        line = data.count(b"\n", 0, error.start) + 1
        text = f"{name}, line {line}: the byte 0x{data[error.start]:02x} is not in "
        raise ValueError(f"{text}{encoding.upper()}{_other_encoding(data)}") from None
    _refuse_zero_bytes(name, data, text)
    return text


def _refuse_zero_bytes(name, data, text):
    """Refuse text with the character of a zero byte, which no reader shows."""
    at = text.find("\0")
    if at < 0:
        return
    remedy = "the file is damaged, or no text"
    if 0.8 < 2 * data.count(b"\0") / len(data) < 1.2:  # two bytes a character
        remedy = "if the file is in utf-16, convert it to UTF-8"
    line = text.count("\n", 0, at) + 1
    raise ValueError(f"{name}, line {line}: a zero byte, as no text has; {remedy}")


def _other_encoding(data):
    """The encoding that a file in another than UTF-8 seems to have, as a remedy."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "; if the file is in utf-16, convert it to UTF-8"
    if b"\0" in data:
        return ", and the file holds zero bytes as no text does"
    return "; if the file is in latin-1, convert it to UTF-8"


@contextlib.contextmanager
def whole_file(path, mode="wb", **kwargs):
    """Open a file for writing that appears under its name complete or not at all.

    The contents go to a new file in the same folder, which is flushed to disk and
    renamed over `path` at the end; on any failure the new file is removed and `path`
    stays as it was.  Pipes, devices and open descriptors (/dev/stdout, /dev/fd/N) are
    written directly.  Access rights of an existing file are kept.  Errors of the system
    name the file.

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


def _descriptor(path):
    """Number of the open descriptor that a path names, or None.

    What it leads to, as `>> log` makes it, is not to be replaced or cut short.
    """
    folder, base = os.path.split(os.fspath(path))
    if folder in _OPEN_FOLDERS and base.isdecimal():
        return int(base)
    return _OPEN_NAMES.get(os.fspath(path))


@contextlib.contextmanager
def _whole_file(path, mode, **kwargs):
    handle = _descriptor(path)
    if handle is not None:
        with open(os.dup(handle), mode, **kwargs) as stream:
            yield stream
        return
    target = os.path.realpath(os.fspath(path))
    rights = None
    with contextlib.suppress(FileNotFoundError):
        rights = os.stat(path).st_mode
    if rights is not None and stat.S_ISDIR(rights):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder; name a file in it")
    if rights is not None and not stat.S_ISREG(rights):
        with open(path, mode, **kwargs) as stream:
            yield stream
        return
    handle, temporary = _new_file(path, target)
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
    _sync_folder(os.path.dirname(target))


def _new_file(path, target):
    """Open descriptor and name of a new file beside the target of a path."""
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:50]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    try:
        return os.open(temporary, flags, 0o666), temporary
    except FileNotFoundError:
        fault = "takes no new files; name another"
        if not os.path.isdir(folder):
            fault = "does not exist; create it first"
        raise FileNotFoundError(
            f"cannot write {os.fspath(path)}: the folder {folder} {fault}"
        ) from None


def _sync_folder(folder):
    """Make the renaming itself durable, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def machine_memory() -> float:
    """Bytes of memory of the machine; infinity where the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
