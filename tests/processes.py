"""Python in a process of its own, with the package that the tests import.

The working directory stays off the path of modules: run from a checkout, the
tests must still meet the installed package.
"""

import os
import pathlib
import signal
import subprocess
import sys

import maxent

HUNG = 600  # s after which a process counts as hung, whatever else the machine does

_PACKAGE = str(pathlib.Path(maxent.__file__).resolve().parents[1])


def _interruptible():
    """Undo the "ignore SIGINT" that a shell hands to its background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _options(env):
    path = os.pathsep.join(filter(None, [_PACKAGE, os.environ.get("PYTHONPATH")]))
    return {
        "env": {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", **(env or {})},
        "preexec_fn": None if sys.platform == "win32" else _interruptible,
        "text": True,
    }


def start(*args, env=None, **kwargs):
    """``python args...``, started and left to run."""
    command = [sys.executable, *map(str, args)]
    return subprocess.Popen(command, **_options(env), **kwargs)


def run(*args, env=None, timeout=HUNG, **kwargs):
    """``python args...``, to its end: what it printed; a failure raises."""
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        **_options(env),
        timeout=timeout,
        capture_output=True,
        **kwargs,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
