"""The side bar of the reference: names below their package and kind, folded.

The groups are those of ``api/index.rst``: a heading for each package, and a line such
as "Estimators" above each table of names.
"""

from __future__ import annotations

import re
from pathlib import Path

INDEX = Path(__file__).resolve().parents[1] / "api" / "index.rst"


def groups(text):
    """Package -> {kind: names}; the kind of a table without a line above it is ""."""
    parts = re.split(r"^(maxent\S*)\n-+\n", text, flags=re.MULTILINE)[1:]
    out = {}
    for package, part in zip(parts[::2], parts[1::2]):
        tables = re.findall(
            r"(?:^(\w[^\n.]*)\n\n)?^\.\. autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)",
            part + "\n",
            re.MULTILINE,
        )
        out[package] = {kind: names.split() for kind, names in tables}
    return out


def add_groups(app, pagename, templatename, context, doctree):
    """Give the pages of the reference the groups, with what to unfold."""
    if not pagename.startswith("api/"):
        return
    current = pagename.removeprefix("api/generated/")
    context["reference_groups"] = [
        {
            "package": package,
            "open": current.rpartition(".")[0] == package,
            "kinds": [
                {
                    "kind": kind,
                    "open": current in {f"{package}.{name}" for name in names},
                    "names": [(name, f"{package}.{name}") for name in names],
                }
                for kind, names in kinds.items()
            ],
        }
        for package, kinds in groups(INDEX.read_text("utf-8")).items()
    ]
    context["reference_current"] = current


def setup(app):
    """Connect to the pages."""
    app.connect("html-page-context", add_groups)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
