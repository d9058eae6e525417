"""The command ``maxent``: fit, predict, evaluate, compare, info and demonstrations.

Exit codes: 0 done; 1 the fit did not reach its tolerance (the model is written all the
same); 2 wrong usage, or a file or standard output that cannot be read or written; 3 the
file asked for is written, but standard output cannot be; 130 interrupted; 141 the
reader of standard output has left.  Codes 2 and 3 come with one sentence on standard
error.  Heavy imports are inside the functions, so that ``maxent --help`` answers at
once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from maxent._commands.console import OutputError, discard, show, tell
from maxent._commands.options import given_options
from maxent._commands.outcome import one_line
from maxent._commands.usage import make_parser

_HOMES = {
    "fit": "maxent._commands.fit",
    "predict": "maxent._commands.predict",
    "evaluate": "maxent._commands.evaluate",
    "compare": "maxent._commands.compare",
    "info": "maxent._commands.info",
    "demo": "maxent._commands.demos",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.

    Returns
    -------
    code : int
        The exit code.
    """
    args = None
    try:
        argv = sys.argv[1:] if argv is None else argv
        args = make_parser(argv).parse_args(argv)
        args.given = given_options(args)
        return _run(args)
    except SystemExit as end:  # --help, --version or wrong usage
        return int(end.code or 0)
    except BrokenPipeError:  # the reader of our output has left
        discard(sys.stdout)
        return 141
    except OutputError as error:
        return _fail(args, _no_output(error))
    except OSError as error:
        if error.filename is not None and error.strerror:
            return _fail(args, f"{error.filename}: {error.strerror}")
        return _fail(args, error)
    except MemoryError as error:
        return _fail(args, f"not enough memory ({one_line(error) or 'no details'})")
    except KeyboardInterrupt:
        written = None if args is None else vars(args).get("written")
        kept = "" if written is None else f"; {written} is written all the same"
        return _fail(args, f"interrupted{kept}", code=130)


def _run(args: argparse.Namespace) -> int:
    from maxent._commands.outcome import CommandError

    command = getattr(importlib.import_module(_HOMES[args.command]), args.command)
    try:
        outcome = command(args)
    except CommandError as error:
        return _fail(args, error)
    try:
        if outcome.report:
            show(outcome.report)
    except OutputError as error:
        if outcome.written is None:
            raise
        message = f"{_no_output(error)}; {outcome.written} is written all the same"
        return _fail(args, message, code=outcome.code or 3)
    return outcome.code


def _no_output(error: OutputError) -> str:
    return f"standard output cannot be written ({error})"


def _fail(args: argparse.Namespace | None, message: object, code: int = 2) -> int:
    command = "maxent" if args is None else f"maxent {args.command}"
    tell(f"{command}: {one_line(message)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
