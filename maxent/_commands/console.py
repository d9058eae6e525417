"""Standard output and standard error of a command, which may be closed, full or ASCII.

Nothing here prints a traceback, and nothing is left in a buffer for the interpreter to
stumble over when it flushes the streams at exit.
"""

import contextlib
import os
import sys

__all__ = ["Messages", "OutputError", "discard", "show", "tell", "told_once"]


class OutputError(Exception):
    """Standard output does not take what was to be printed; says why."""


def show(text, escape=True):
    """Write text to standard output and flush it.

    Parameters
    ----------
    text : str
    escape : bool, default=True
        Write characters that the encoding lacks as escapes, as standard error does.
        False refuses them: for output that another program reads.

    Raises
    ------
    OutputError
        If standard output is closed or full, or cannot encode the text.
    BrokenPipeError
        If its reader has left.
    """
    stream = sys.stdout
    if stream is None:
        raise OutputError("it is closed")
    if escape:
        text = _escaped(text, stream)
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard(stream)
        raise
    except UnicodeEncodeError as error:
        raise OutputError(
            f"its encoding {error.encoding} lacks {text[error.start]!a}; write a file "
            "with -o, or set PYTHONIOENCODING=utf-8"
        ) from None
    except OSError as error:
        discard(stream)
        raise OutputError(error.strerror or error) from None
    except ValueError:  # closed by Python code of the same process
        raise OutputError("it is closed") from None


_TOLD: set[str] | None = None  # lines of a block of `told_once`, and its command
_COMMAND: str | None = None


@contextlib.contextmanager
def told_once(command):
    """Tell each line of a block once, those of ``fit`` as lines of another command."""
    global _TOLD, _COMMAND
    _TOLD, _COMMAND = set(), command
    try:
        yield
    finally:
        _TOLD = _COMMAND = None


def tell(text):
    """Write a line to standard error, if it takes any."""
    if _TOLD is not None:
        text = text.replace("maxent fit:", f"maxent {_COMMAND}:", 1)
        if text in _TOLD:
            return
        _TOLD.add(text)
    Messages().write(f"{text}\n")


class Messages:
    """Standard error as a file object that never fails."""

    def write(self, text):
        """Write text; nothing happens where standard error is closed or full."""
        stream = sys.stderr
        if stream is None:
            return
        try:
            stream.write(_escaped(text, stream))
            stream.flush()
        except (OSError, ValueError):
            discard(stream)

    def flush(self):
        """Do nothing: `write` flushes."""

    def isatty(self):
        """True if standard error is a terminal."""
        return sys.stderr is not None and sys.stderr.isatty()


def discard(stream):
    """Send to nowhere what a stream still holds and what it is yet to be given."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def _escaped(text, stream):
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
