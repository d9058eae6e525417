"""mypy and pyright over the package and over code of its users.

    python tests/checks/user_types.py

- mypy over the package, with the settings of pyproject.toml;
- mypy --strict and pyright over the scripts in tests/typing, and over the mistakes in
  tests/typing/errors, where they must report every marked line and no other;
- both over the code of README.md and docs/guide. Of other packages pyright takes only
  what they declare there: what it infers from scikit-learn's sources (a parameter with
  the default 1 takes no float) would be the reader's fault.
"""

from __future__ import annotations

import doctest
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "typing"


def run(*command):
    """Output of a checker that ran to its end, with errors or without."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def mypy(*arguments):
    """Errors (path, line, text) that mypy reports."""
    report = run("mypy", "--no-error-summary", "--no-pretty", *arguments)
    found = re.findall(r"^(.+?):(\d+): error: (.+)$", report, re.MULTILINE)
    return [(pathlib.Path(ROOT, path), int(line), text) for path, line, text in found]


def pyright(*arguments):
    """Errors (path, line, text) that pyright reports."""
    report = run("pyright", "--outputjson", "--pythonpath", sys.executable, *arguments)
    return [
        (
            pathlib.Path(entry["file"]),
            entry["range"]["start"]["line"] + 1,
            f"{' '.join(entry['message'].split())}  [{entry.get('rule')}]",
        )
        for entry in json.loads(report)["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


def code_of(page):
    """The Python code of a page, on the lines where it stands."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    if page.suffix == ".md":
        blocks = [
            (text.count("\n", 0, block.start(1)), block[1])
            for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.M)
        ]
    else:
        examples = doctest.DocTestParser().get_examples(text)
        # what is shown to fail is no example of good use
        blocks = [(e.lineno, e.source) for e in examples if e.exc_msg is None]
    for first, source in blocks:
        for k, line in enumerate(source.splitlines()):
            lines[first + k] = line
    return "\n".join(lines) + "\n"


def extracted(folder):
    """Files with the code of README.md and of the guide; their pages by path."""
    pages = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.rst"))]:
        file = pathlib.Path(folder, f"page_{page.stem.lower()}.py")
        file.write_text(code_of(page), encoding="utf-8")
        pages[file] = page
    return pages


def tell(name, errors):
    """Print errors and how many there are; whether there is none."""
    for path, line, text in errors:
        where = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"{where}:{line}: {text}")
    print(f"{name}: {len(errors)} errors")
    return not errors


def missed(path, errors):
    """Marked lines that were not reported, and reports of other lines."""
    marked = {
        k
        for k, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith("# error")
    }
    reported = Counter(line for _, line, _ in errors)
    out = [(path, k, "is not reported") for k in sorted(marked - set(reported))]
    return out + [error for error in errors if error[1] not in marked]


def main():
    """Run everything; whether all is as it should be."""
    good = tell("mypy, package", mypy())
    strict = ["--strict", "--config-file", SCRIPTS / "mypy.ini"]
    scripts = sorted(SCRIPTS.glob("*.py"))
    good &= tell(f"mypy --strict, {len(scripts)} scripts", mypy(*strict, *scripts))
    good &= tell(f"pyright, {len(scripts)} scripts", pyright(*scripts))
    for path in sorted(SCRIPTS.glob("errors/*.py")):
        good &= tell(f"mypy, {path.name}", missed(path, mypy(*strict, path)))
        good &= tell(f"pyright, {path.name}", missed(path, pyright(path)))
    with tempfile.TemporaryDirectory() as folder:
        pages = extracted(folder)
        settings = pathlib.Path(folder, "pyrightconfig.json")
        settings.write_text(
            json.dumps({"useLibraryCodeForTypes": False, "extraPaths": [str(ROOT)]})
        )
        for name, errors in (
            ("mypy", mypy("--config-file", SCRIPTS / "pages.ini", *pages)),
            ("pyright", pyright("--project", settings)),
        ):
            located = [(pages.get(path, path), *rest) for path, *rest in errors]
            good &= tell(f"{name}, README.md and guide", located)
    return good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
