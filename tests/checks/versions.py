"""The tests on the lowest and on the newest versions of all dependencies.

    python tests/checks/versions.py [lowest] [newest] [words for pytest]

Each has an environment of its own, made from the Python that runs this script, and the
package is built into it from the folder where this starts. The lowest versions stand in
lowest.txt; the oldest Python has wheels of all of them. The newest are those that pip
chooses for this Python.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LOWEST = Path(__file__).with_name("lowest.txt")
KINDS = ("lowest", "newest")
INSTALLED = """
import sys
from importlib.metadata import version
print("Python", sys.version.split()[0], *(f"{k}=={version(k)}" for k in sys.argv[1:]))
"""


def lowest_versions():
    """Name without extras -> version, of lowest.txt."""
    text = LOWEST.read_text(encoding="utf-8")
    found = re.findall(r"^([\w-]+)(?:\[.+\])?==(\S+)$", text, re.MULTILINE)
    return dict(found)


def install(python, kind):
    """Install the package with its tests' needs into the environment of `python`."""
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if kind == "lowest":  # the tools of the build too, which pip otherwise isolates
        wheels = ["--only-binary", ":all:", "--requirement", LOWEST]
        subprocess.run([*pip, *wheels], check=True)
        subprocess.run([*pip, "--no-build-isolation", ".[test]"], check=True)
    else:
        subprocess.run([*pip, ".[test,progress]"], check=True)
    shutil.rmtree("build", ignore_errors=True)  # for this environment alone
    subprocess.run([python, "-m", "pip", "check"], check=True)


def tests_pass(kind, folder, words):
    """Whether the tests pass on versions of a kind."""
    venv.create(folder / kind, with_pip=True)
    python = (
        folder / kind / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    )
    lowest = lowest_versions()
    try:
        install(python, kind)
        command = [python, "-c", INSTALLED, *lowest]
        found = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    except subprocess.CalledProcessError as error:
        print(f"{kind}: {error}", flush=True)
        return False
    print(f"{kind}: {found.stdout}", end="", flush=True)
    wanted = {f"{name}=={version}" for name, version in lowest.items()}
    if kind == "lowest" and not wanted <= set(found.stdout.split()):
        print("pip chose others than the lowest:", *wanted - set(found.stdout.split()))
        return False
    # without the package's folder, so that what is tested is what is installed
    tests = folder / f"tests of {kind}"
    shutil.copytree(".", tests, ignore=lambda at, _: ["maxent"] * (at == "."))
    command = [python, "-m", "pytest", "-q", *words]
    return subprocess.run(command, cwd=tests).returncode == 0


def main():
    words = sys.argv[1:]
    kinds = []
    while words and words[0] in KINDS:
        kinds.append(words.pop(0))
    outcomes = []
    for kind in kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            passed = tests_pass(kind, Path(folder), words)
        outcomes.append(f"{kind} {'passed' if passed else 'FAILED'}")
    print("; ".join(outcomes))
    return int("FAILED" in " ".join(outcomes))


if __name__ == "__main__":
    sys.exit(main())
