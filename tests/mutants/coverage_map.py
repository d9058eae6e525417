"""Which tests run which lines: recorded once by coverage.py, file of tests by file.

A folder holds `lines`, the data of coverage.py with one context for each test function,
and `tests.json` with seconds and failures of the tests and a checksum of every source.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Every process that the tests start measures itself, too.
SITE = "import coverage\ncoverage.process_startup()\n"
SETTINGS = """\
[run]
source = {package}
data_file = {data}
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
sigterm = true
disable_warnings = no-data-collected, module-not-imported, module-not-measured
"""


def checksum(path: pathlib.Path) -> str:
    """Checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def function_of(context: str) -> str:
    """Name without parameters and phase: of "a.py::f[x] (call)" it is "a.py::f"."""
    return context.partition("[")[0].partition(" ")[0]


class CoverageMap:
    """Which tests run which lines.

    Parameters
    ----------
    folder : Path
        Where the record is.
    root : Path
        Checkout whose copies are recorded.
    """

    def __init__(self, folder: pathlib.Path, root: pathlib.Path):
        self.folder, self.root = folder.absolute(), root
        self.index = folder / "tests.json"
        self.tests = {}
        self.sources = {}
        if self.index.exists():
            found = json.loads(self.index.read_text(encoding="utf-8"))
            self.tests, self.sources = found["tests"], found["sources"]
        self._contexts: dict[str, dict[int, set[str]]] = {}

    # -- recording ---------------------------------------------------------------------
    def record(self, files, tree, environment):
        """Run files of tests in a copy; those recorded before are left out."""
        now = {
            str(path.relative_to(self.root)): checksum(path)
            for path in sorted((self.root / "maxent").rglob("*.py"))
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        if now != self.sources:  # lines have moved
            (self.folder / "lines").unlink(missing_ok=True)
            self.tests, self.sources = {}, now
        self.tests = {f: t for f, t in self.tests.items() if (self.root / f).exists()}
        for file in files:
            own = checksum(self.root / file)
            if self.tests.get(file, {}).get("checksum") != own:
                print(f"recording {file}", flush=True)
                found = self._run(file, tree, environment)
                self.tests[file] = {"checksum": own, **found}
                found = {"tests": self.tests, "sources": self.sources}
                self.index.write_text(json.dumps(found, indent=0), encoding="utf-8")

    def _run(self, file, tree, environment):
        """Seconds and failures of one file of tests; its lines join the others."""
        import coverage

        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "sitecustomize.py").write_text(SITE, encoding="utf-8")
            settings = SETTINGS.format(package=tree / "maxent", data=work / "lines")
            (work / "settings").write_text(settings, encoding="utf-8")
            path = os.pathsep.join([folder, str(HERE), environment["PYTHONPATH"]])
            record = work / "record.json"
            environment = {
                **environment,
                "PYTHONPATH": path,
                "COVERAGE_PROCESS_START": str(work / "settings"),
                "MAXENT_RECORD": str(record),
            }
            command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--tb=no"]
            command += ["-p", "no:cacheprovider", "-p", "recorder", file]
            subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, timeout=3600
            )
            data = str(self.folder / "lines")
            lines = coverage.Coverage(data_file=data, config_file=False)
            lines.load()
            lines.combine([folder], keep=False)
            lines.save()
            return json.loads(record.read_text(encoding="utf-8"))

    # -- reading -----------------------------------------------------------------------
    def contexts(self, source: str) -> dict[int, set[str]]:
        """Test functions by line of a source."""
        import coverage

        if source not in self._contexts:
            data = coverage.CoverageData(str(self.folder / "lines"))
            data.read()
            found = self._contexts[source] = {}
            for file in data.measured_files():  # of every copy that was recorded
                if file.endswith(f"/{source}"):
                    for line, names in data.contexts_by_lineno(file).items():
                        tests = set(map(function_of, names))
                        found.setdefault(line, set()).update(filter(self.exists, tests))
        return self._contexts[source]

    def tests_of(self, source: str, first: int, last: int) -> set[str]:
        """Test functions that run some lines; all of the file for what imports run."""
        by_line = self.contexts(source)
        found = set().union(*(by_line.get(n, set()) for n in range(first, last + 1)))
        everywhere = set().union(*by_line.values())
        moved = self.sources.get(source) != checksum(self.root / source)
        return everywhere if moved or len(found) <= 1 else found

    def exists(self, test: str) -> bool:
        """Whether a test function was there when its file was last recorded."""
        file = self.tests.get(test.partition("::")[0], {"seconds": {}})
        return test in file["seconds"]

    def seconds(self, test: str) -> float:
        """Time of a test function when it was recorded."""
        return self.tests[test.partition("::")[0]]["seconds"].get(test, 0.0)

    def is_reliable(self, test: str) -> bool:
        """Whether a test function passed without a change."""
        return test not in self.tests[test.partition("::")[0]]["failed"]
