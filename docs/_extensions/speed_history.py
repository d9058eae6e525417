"""The speed of the package over its history, as pages of asv.

They show the measurements in ``benchmarks/history``, and are made where asv and the
commits that it names are at hand: from a clone, not from a source distribution. Unlike
the other pages they fetch scripts from elsewhere.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = "`pages of their own <speed/index.html>`__"
WITHOUT = "pages of their own, which this build of the documentation lacks"


def publish(folder):
    """Make the pages in ``folder/speed``.

    Returns
    -------
    list of str
        For `html_extra_path`: the folder, or nothing where they cannot be made.
    """
    folder, suite = Path(folder), ROOT / "benchmarks"
    if not (ROOT / ".git").exists() or importlib.util.find_spec("asv") is None:
        return []
    settings = json.loads((suite / "asv.conf.json").read_text("utf-8"))
    settings |= {
        "repo": str(ROOT),
        "benchmark_dir": str(suite / "suite"),
        "results_dir": str(suite / "history"),
    }
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "asv.conf.json"
        path.write_text(json.dumps(settings), "utf-8")
        command = [sys.executable, "-m", "asv", "publish", "--config", str(path)]
        out = ["--html-dir", str(folder / "speed")]
        done = subprocess.run([*command, *out], text=True, capture_output=True)
    if done.returncode:
        logging.getLogger(__name__).info(done.stdout + done.stderr)
        return []
    return [str(folder)]


def substitution(made):
    """Definition of |speed_history| for the page on performance."""
    return f".. |speed_history| replace:: {LINK if made else WITHOUT}\n"
