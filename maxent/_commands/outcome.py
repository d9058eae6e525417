"""How a command ends, and what several commands do before and after their work."""

import os
import shlex
from dataclasses import dataclass

from maxent._support.files import STANDARD_INPUT

__all__ = [
    "CommandError",
    "Outcome",
    "aligned",
    "check_model_output",
    "check_output",
    "listed",
    "one_line",
    "quoted",
]


class CommandError(Exception):
    """One sentence for the user; the command ends with exit code 2."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command.

    Attributes
    ----------
    report : str
        For standard output.
    code : int
        The exit code.
    written : str or None
        The file that was asked for, which stays if the report cannot be printed.
    """

    report: str = ""
    code: int = 0
    written: str | None = None


def check_output(path, *inputs):
    """Find out before the work that its result could not be written."""
    if path == STANDARD_INPUT:
        raise CommandError(f"{path} stands for standard input; name a file to write")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"cannot write {path}: the folder {folder} does not exist")
    if os.path.isdir(path):
        raise CommandError(f"cannot write {path}: it is a folder")
    for other in inputs:
        if other == STANDARD_INPUT or not os.path.exists(other):
            continue
        if os.path.exists(path) and os.path.samefile(path, other):
            raise CommandError(f"{path} would replace the input of the same name")


def check_model_output(path, *inputs):
    """As `check_output`, and refuse to replace a file that is no model."""
    check_output(path, *inputs)
    if os.path.isfile(path) and os.path.getsize(path) and not _is_model(path):
        raise CommandError(
            f"{path} exists and is no model file; fit writes the MODEL there. Name "
            "another file, or remove it first"
        )


def _is_model(path):
    """True if a file has the members of a model file, whatever is in them."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return {"metadata.npy", "checksum.npy"} <= {*archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        return False


def one_line(message):
    """Text of a message without line breaks."""
    return " ".join(str(message).split())


def quoted(name):
    """A name, or number, as the shell takes it for one word."""
    return shlex.quote(str(name))


def listed(items, most=12):
    """Items with commas, the first of them if there are many."""
    items = [str(item) for item in items]
    more = f", ... ({len(items)} in all)" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def aligned(lines):
    """Pairs of name and value as lines, the values in one column.

    Line breaks and other characters that move the cursor are shown as escapes.
    """
    lines = [(_visible(name), _visible(value)) for name, value in lines]
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in lines)


def _visible(text):
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
