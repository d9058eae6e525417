"""The files that publish the package agree with one another and with what is built.

They are found beside this folder; an installed package has none of them.
"""

import csv
import importlib
import itertools
import json
import pathlib
import re
import statistics
import tomllib

import pytest

import maxent

ROOT = pathlib.Path(__file__).resolve().parents[1]


def text_of(path):
    """Text of a file of the repository, or the test is skipped."""
    file = ROOT / path
    if not file.exists():
        pytest.skip(f"{path} is not beside the tests")
    return file.read_text(encoding="utf-8")


@pytest.fixture
def metadata():
    return tomllib.loads(text_of("pyproject.toml"))


@pytest.mark.parametrize(
    "path, pattern",
    [
        ("pyproject.toml", r'^version = "(.+)"$'),
        ("CITATION.cff", r"^version: (.+)$"),
        ("conda/meta.yaml", r'set version = "(.+)"'),
    ],
)
def test_version_is_that_of_the_package(path, pattern):
    found = re.findall(pattern, text_of(path), re.MULTILINE)
    assert found == [maxent.__version__]


def requirements(listed):
    """Requirements without the markers of systems."""
    return [one.partition(";")[0].strip() for one in listed]


def test_recipe_needs_what_the_package_needs(metadata):
    recipe = text_of("conda/meta.yaml")
    run = re.search(r"^  run:\n((?:    - .+\n)+)", recipe, re.MULTILINE)[1]
    host = re.search(r"^  host:\n((?:    - .+\n)+)", recipe, re.MULTILINE)[1]

    def named(block):
        return {line[6:].replace(" ", "").lower() for line in block.splitlines()}

    needed = set(requirements(metadata["project"]["dependencies"]))
    assert named(run) == needed | {"python"}
    needed = {r.lower() for r in metadata["build-system"]["requires"]}
    assert named(host) == needed | {"python", "pip"}


def lowest_of(*groups):
    """Name with extras -> lowest version, which is the same in all groups."""
    found = {}
    for requirement in requirements(itertools.chain(*groups)):
        name, lowest = requirement.split(">=")
        assert found.setdefault(name, lowest) == lowest, name
    return found


def test_lowest_versions_are_tested(metadata):
    extras = metadata["project"]["optional-dependencies"]
    bars = lowest_of(extras.pop("progress"))  # those of a newer scikit-learn
    needed = metadata["build-system"]["requires"], metadata["project"]["dependencies"]
    assert bars["rich"] == lowest_of(*needed, *extras.values())["rich"]
    tested = (extras[name] for name in ("plot", "dask", "completion", "test"))
    declared = lowest_of(*needed, *tested)
    lines = text_of("tests/checks/lowest.txt").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert pinned.keys() - declared.keys() == {"pyparsing"}  # of Matplotlib
    for name, version in declared.items():  # 2.0 is 2.0.0
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", pinned[name]), name


def test_pythons_are_those_that_are_built_and_tested(metadata):
    listed = [
        classifier.rpartition(" ")[2]
        for classifier in metadata["project"]["classifiers"]
        if re.search(r"Python :: 3\.\d+$", classifier)
    ]
    assert metadata["project"]["requires-python"] == f">={listed[0]}"
    build = metadata["tool"]["cibuildwheel"]["build"]
    newest = listed[-1].replace(".", "")
    ordinary = [f"cp{python.replace('.', '')}-*" for python in listed]
    assert build == [*ordinary, f"cp{newest}t-*"]
    workflow = text_of(".github/workflows/tests.yml")
    matrix = re.search(r"python: \[(.+)\]", workflow)[1]
    assert re.findall(r'"([\d.]+)"', matrix) == listed
    assert f'"{listed[-1]}t"' in workflow


def test_systems_are_those_that_are_built(metadata):
    names = {"Linux": "ubuntu", "MacOS": "macos", "Windows": "windows"}
    listed = {
        names[classifier.rpartition(" ")[2]]
        for classifier in metadata["project"]["classifiers"]
        if classifier.startswith("Operating System")
    }
    built = re.search(r"os: \[(.+)\]", text_of(".github/workflows/wheels.yml"))[1]
    assert {name.partition("-")[0] for name in built.split(", ")} == listed


def test_addresses_stand_in_one_place(metadata):
    places = metadata["project"]["urls"].values()
    files = [
        *ROOT.glob("*.md"),
        *ROOT.glob("*.cff"),
        *ROOT.glob("conda/*"),
        *ROOT.glob(".github/**/*.yml"),
        *ROOT.glob("docs/*.rst"),
        *ROOT.glob("docs/*.py"),
    ]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not [place for place in places if place in text], file


def test_links_of_the_readme_lead_to_the_source(metadata, monkeypatch, tmp_path):
    pytest.importorskip("Cython")
    text_of("setup.py")
    monkeypatch.syspath_prepend(ROOT)
    readme = importlib.import_module("setup").readme
    text = text_of("README.md")
    for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / path).exists(), path
    lines = text_of("pyproject.toml")
    address = "https://source.example/maxent"
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for source, links in (
        (metadata["project"]["urls"]["Source"], ["(CITATION.cff)"]),
        (
            address,
            [f"({address}/{path}" for path in ("blob/HEAD/CITATION", "raw/HEAD")],
        ),
    ):
        settings = lines.replace(metadata["project"]["urls"]["Source"], source)
        (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
        assert all(link in readme() for link in links)


def test_overview_and_readme_name_every_estimator_and_extra(metadata):
    overview = text_of("docs/overview.rst")
    classes = [name for name in maxent.__all__ if name[0].isupper()]
    assert len(classes) > 20
    assert not [name for name in classes if f".{name}`" not in overview]
    text = text_of("README.md")
    for_users = {"plot", "dask", "progress", "completion"}
    assert for_users <= set(metadata["project"]["optional-dependencies"])
    assert not [extra for extra in for_users if f"maxent[{extra}]" not in text]


def figures_of_the_first_page():
    """The words of the first page that hold figures, from the tables of the races."""

    def rows(name):
        text = text_of(f"docs/performance/{name}.csv")
        return list(csv.DictReader(text.splitlines()))

    first = rows("first_page")
    pair = "{ours} for {theirs}".format_map
    made, digits = first[1:3]
    assert [made["work"], digits["work"]] == ["1000 x 20", "digits"]
    yield f"log-loss {pair(made)} (made rows), {pair(digits)} (digits) in"
    yield f"{made['ratio']} and {digits['ratio']} of the time"
    detectors = [row for row in first if row["group"] == "outliers"]
    yield f"ROC AUC {', '.join(map(pair, detectors))} on four tables"
    least, most = min(r["ratio"] for r in detectors), max(r["ratio"] for r in detectors)
    yield f"{least} to {most} of the time, and the columns"
    (motif,) = [row for row in first if row["group"] == "motifs"]
    found = float(motif["ours"].split("; ")[1])
    yield f"{found:.0%} of the places in {motif['ours s'][:3]} s".replace("%", " %")
    chains = [float(row["ratio"]) for row in rows("hmmlearn_examples")]
    yield f"{len(chains)} examples in {min(chains):.2f} to {max(chains):.2f} of its"
    ratios = [float(row["ratio"]) for row in rows("mixture_fits")]
    yield f"ten real tables in {statistics.geometric_mean(ratios[:10]):.2f} of the time"


@pytest.mark.parametrize("page", ["README.md", "docs/index.rst"])
def test_figures_of_the_first_page_are_those_of_the_races(page):
    text = " ".join(text_of(page).split())
    assert not [words for words in figures_of_the_first_page() if words not in text]


def test_pages_list_every_check():
    usage = re.findall(r"^#   (\.ci/check \w+)  ", text_of(".ci/check"), re.MULTILINE)
    branches = re.findall(r"^([a-z| ]+)\) shift", text_of(".ci/check"), re.MULTILINE)
    names = [name for branch in branches for name in branch.split(" | ")]
    assert usage == [f".ci/check {name}" for name in names]
    listed = re.compile(r"^   \* - (.+)\n     - ``(\.ci/check.+)``$", re.MULTILINE)
    page = listed.findall(text_of("docs/contributing.rst"))
    assert [command for _, command in page] == usage


def test_the_policy_states_the_lowest_versions(metadata, monkeypatch):
    text_of("docs/_extensions/project_files.py")
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    project_files = importlib.import_module("project_files")
    needed = requirements(metadata["project"]["dependencies"])
    needed = [r.replace(">=", " ") for r in needed]
    assert f"|requirements| replace:: {', '.join(needed)}\n" in (
        project_files.substitutions()
    )
    assert "|requirements|" in text_of("docs/policy.rst")


def test_workflows_run_the_lowest_and_the_newest_versions():
    workflow = text_of(".github/workflows/tests.yml")
    assert ".ci/check versions ${{ matrix.kind }}" in workflow
    assert re.findall(r"\{kind: (\w+),", workflow) == ["lowest", "newest"]


def test_speed_history_is_small_and_of_benchmarks_that_exist():
    text_of("benchmarks/history/benchmarks.json")
    files = [*(ROOT / "benchmarks" / "history").rglob("*.json")]
    assert sum(file.stat().st_size for file in files) < 200_000
    named = json.loads(text_of("benchmarks/history/benchmarks.json"))
    for name in named.keys() - {"version"}:
        module, benchmark, _ = name.split(".")
        assert f"class {benchmark}(" in text_of(f"benchmarks/suite/{module}.py")
    results = [json.loads(f.read_text("utf-8")) for f in files if "python3" in f.name]
    assert len(results) > 1
    for one in results:
        assert one["results"].keys() <= named.keys()
        assert one["params"]["machine"] in {file.parent.name for file in files}
