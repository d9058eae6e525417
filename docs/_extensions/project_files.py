"""What the pages take from files of the project: metadata and the list of changes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def published_urls():
    """Addresses of the project by name, without those that are still placeholders."""
    return {k: v for k, v in METADATA["urls"].items() if "example.org" not in v}


def substitutions():
    """Definitions of |requires_python| and |requirements| for every page."""
    oldest = METADATA["requires-python"].removeprefix(">=")
    needed = [re.match(r"([\w-]+)>=([\w.]+)", r) for r in METADATA["dependencies"]]
    listed = ", ".join(f"{match[1]} {match[2]}" for match in needed)
    return (
        f".. |requires_python| replace:: {oldest}\n"
        f".. |requirements| replace:: {listed}\n"
    )


def as_rst(markdown):
    """Headings and links of a Markdown list of changes, as reStructuredText."""
    text = re.sub(r"^# .*\n", "", markdown)  # the page has a title
    text = re.sub(
        r"^## (.+)$", lambda m: f"{m[1]}\n{'-' * len(m[1])}", text, flags=re.MULTILINE
    )
    return re.sub(r"\[([^\]]+)\]\((https?://[^)]+)\)", r"`\1 <\2>`__", text)


def convert(app, relative_path, docname, content):
    """Read CHANGELOG.md where a page includes it."""
    if Path(relative_path).name == "CHANGELOG.md":
        content[0] = as_rst(content[0])


def setup(app):
    """Connect to the inclusion of files."""
    app.connect("include-read", convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
