"""The documentation tells the truth: its examples run, its pictures draw.

The pages are found beside this folder; without them their tests are skipped. The
docstrings tested are those of the installed package.
"""

import ast
import csv
import doctest
import gzip
import html
import importlib
import inspect
import io
import pathlib
import pkgutil
import re
import runpy
import shlex
import shutil
import sys
import time
import zlib
from dataclasses import is_dataclass
from enum import Enum, EnumType
from functools import cached_property

import numpy as np
import pytest
from processes import run

import maxent

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in DOCS.rglob("*.rst")
    if not {"_build", "gallery", "generated", "_templates"}
    & set(page.relative_to(DOCS).parts)
)
FIGURES = sorted(DOCS.glob("figures/*.py"))
SCRIPTS = sorted((ROOT / "examples").glob("*/plot_*.py"))  # the gallery
SLOW = {"plot_2_margin_priors.py"}  # cross-validation
PACKAGES = (
    "maxent",
    *(f"maxent.{n}" for n in maxent.__all__ if inspect.ismodule(getattr(maxent, n))),
)
FLAGS = doctest.ELLIPSIS

needs_docs = pytest.mark.skipif(not PAGES, reason="the docs folder is not there")


def run_doctest(test):
    """Number of examples run; a failure raises with doctest's own report."""
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    result = runner.run(test, out=report.write)
    assert result.failed == 0, report.getvalue()
    assert result.attempted == len(test.examples)
    return result.attempted


def examples_in(text):
    """How many examples a text holds, counted without doctest's parser."""
    return len(re.findall(r"^ *>>> ", text, re.MULTILINE))


def modules():
    """Names of the Python modules of the package."""
    found = pkgutil.walk_packages(maxent.__path__, "maxent.")
    return ["maxent", *(m.name for m in found if not m.name.startswith("maxent._core"))]


def public_objects():
    """Cases (name, object): every function and class that users import."""
    out = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                full = f"{package}.{name}"
                out.append(pytest.param(full, thing, id=full))
    return out


PUBLIC = public_objects()


# -- examples --------------------------------------------------------------------------
@needs_docs
@pytest.mark.parametrize("page", PAGES)
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    if "sklearn.callback" in text:
        pytest.importorskip("sklearn.callback")
    test = doctest.DocTestParser().get_doctest(text, {}, page, str(DOCS / page), 0)
    assert run_doctest(test) == examples_in(text)


@pytest.mark.parametrize("module", modules())
def test_examples_of_the_docstrings_run(module, tmp_path, monkeypatch):
    if module == "maxent.displays" or module.startswith("maxent.displays."):
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    thing = importlib.import_module(module)
    run = sum(map(run_doctest, doctest.DocTestFinder().find(thing)))
    assert run == examples_in(inspect.getsource(thing))  # none is overlooked


@pytest.mark.parametrize("name, thing", PUBLIC)
def test_every_estimator_shows_an_example(name, thing):
    if hasattr(thing, "fit"):
        assert examples_in(inspect.getdoc(thing)) > 0


@pytest.mark.parametrize("wrong", [">>> 1 + 1\n3\n", ">>> 1 / 0\n"])
def test_an_example_that_fails_is_seen(wrong):
    test = doctest.DocTestParser().get_doctest(wrong, {}, "wrong", None, 0)
    with pytest.raises(AssertionError, match="wrong"):
        run_doctest(test)


def test_example_of_the_readme_runs(capsys):
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("README.md is not there")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "accuracy" in capsys.readouterr().out


def write_tables(folder):
    """The tables and sequences that the pages on the command line name."""
    from maxent.datasets import make_planted_motifs

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(3)
    rows = {
        "cars.csv": [
            f"{'rg'[a]},{'lms'[i % 3]},{['no', 'yes'][a ^ (i % 3 == 0)]}"
            for i, a in enumerate((X[:, 0] > 0).astype(int).tolist())
        ],
        "prices.csv": [f"{a},{b},{a - b:.3f}" for a, b in X],
        "points.csv": [f"{a + 5 * (i % 3)},{b}" for i, (a, b) in enumerate(X)],
        "some-labels.csv": [
            f"{a},{b},{('yes' if a > 0 else 'no') if i % 3 else ''}"
            for i, (a, b) in enumerate(X)
        ],
        "new.csv": [f"{a + 5},{2 * b}" for a, b in X],
        "labelled.csv": [
            f"{a + 9 * (i < 5)},{b},{i < 5:d}" for i, (a, b) in enumerate(X)
        ],
        "patients.csv": [
            f"{i % 3},p{i},{1 + i % 2},Dr {i % 4},{a},{'ny'[int(a > 0)]}"
            for i, a in enumerate(X[:, 0])
        ],
    }
    heads = ("color,size,class", "a,b,price", "a,b", "a,b,k", "a,b", "a,b,anomaly")
    heads = (*heads, "ward,patient,w,doctor,age,ill")
    for head, (name, lines) in zip(heads, rows.items()):
        (folder / name).write_text("\n".join([head, *lines]) + "\n")
    X, y, _, _ = make_planted_motifs(40, 16, 8, random_state=0)
    records = [f">s {('none', 'site')[k]}\n{x}\n" for x, k in zip(X, y)]
    (folder / "sites.fasta").write_text("".join(records))
    for name, own in (("bound.fa", 1), ("background.fa", 0)):
        kept = (record for record, k in zip(records, y) if k == own)
        (folder / name).write_text("".join(kept))
    with gzip.open(folder / "huge.svm.gz", "wt") as stream:
        stream.writelines(f"{i % 2} 1:{i % 5} 3:{i % 2}\n" for i in range(60))


@needs_docs
@pytest.mark.parametrize(
    "page, least",
    [
        *(("shell", 5), ("shell_tables", 8), ("shell_anomalies", 6)),
        *(("shell_sequences", 9), ("shell_evaluate", 3), ("shell_large", 2)),
    ],
)
def test_commands_of_the_pages_on_the_shell_run(page, least, tmp_path, monkeypatch):
    from maxent.cli import main
    from maxent.datasets import load_crabs

    crabs = load_crabs()
    lines = [",".join([*crabs.feature_names, "sex"])]
    for row, k in zip(crabs.data.tolist(), crabs.target):
        lines.append(",".join([*map(str, row), str(crabs.target_names[k])]))
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    strings = ["ACACACNACA x", "AACCAACCAA y", "CACACACACA x", "CCAACCAACC y"]
    for name in ("genes.fasta", "more.fasta"):
        records = (f">s {label}\n{x}\n" for x, label in map(str.split, strings))
        (tmp_path / name).write_text("".join(records))
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "guide" / f"{page}.rst").read_text(encoding="utf-8")
    text = re.sub(r" \\\n +", " ", text)  # lines that a backslash continues
    commands = re.findall(r"^   maxent (.+)$", text, re.MULTILINE)
    assert len(commands) >= least
    for command in commands:
        assert main(shlex.split(command)) == 0, command


# -- rows and checks of the errata -----------------------------------------------------
def rows_of_the_errata():
    """Rows (place, name of the check, or None for a row of words) of the tables."""
    text = (DOCS / "errata.rst").read_text(encoding="utf-8")
    rows = re.findall(
        r"^   \* - (.+?)(?=^   \* - |^\S|\Z)", text, re.MULTILINE | re.DOTALL
    )
    cells = [[" ".join(c.split()) for c in re.split(r"\n     - ", r)] for r in rows]
    out = []
    for place, *_, last in (row for row in cells if row[0] != "place"):
        name = re.fullmatch(r":ref:`[^<]+ <([\w-]+)>`", last)
        assert name or last == "reading", (place, last)
        out.append((place, name and name[1]))
    return out


def checks_of_the_errata():
    """Text of every check by its name, without the set-up of the next section."""
    text = (DOCS / "errata_checks.rst").read_text(encoding="utf-8")
    parts = re.split(r"^\.\. _([\w-]+):\n", text, flags=re.MULTILINE)[1:]
    bodies = (re.split(r"\n.+\n-{5,}\n", body)[0] for body in parts[1::2])
    return list(zip(parts[::2], bodies))


@needs_docs
def test_every_row_of_the_errata_has_the_check_of_its_name():
    named = [name for _, name in rows_of_the_errata() if name]
    checks = checks_of_the_errata()
    found = [name for name, _ in checks if not name.startswith("unsaid-")]
    assert sorted(named) == sorted(found)
    for name, body in checks:
        answers = re.findall(r"^(?!>>>|\.\.\.).*False, True", body, re.MULTILINE)
        assert answers or name.startswith("unsaid-"), name  # printed wrong, right right


@needs_docs
def test_few_rows_of_the_errata_are_of_words_alone():
    rows = rows_of_the_errata()
    assert len(rows) > 70
    assert sum(name is None for _, name in rows) <= len(rows) / 7


# -- pictures --------------------------------------------------------------------------
def drawn(script):
    """Number of pictures that a script shows, each with something in its axes."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    shown = set()
    show, plt.show = plt.show, lambda: shown.update(plt.get_fignums())
    try:
        runpy.run_path(str(script))
        assert shown == set(plt.get_fignums())
        for figure in map(plt.figure, shown):
            for axes in figure.axes:
                assert axes.has_data() and axes.get_xlabel() + axes.get_title()
            figure.savefig(io.BytesIO(), format="svg")
    finally:
        plt.show = show
        plt.close("all")
    return len(shown)


@needs_docs
@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.name)
def test_picture_is_drawn(figure):
    assert drawn(figure) == 1


@needs_docs
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(s, marks=[pytest.mark.slow] * (s.name in SLOW), id=s.name)
        for s in SCRIPTS
    ],
)
def test_script_of_the_gallery_draws(script):
    assert drawn(script) >= 1


@needs_docs
@pytest.mark.timed
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_of_the_gallery_draws_in_seconds(script):
    start = time.process_time()
    drawn(script)
    assert time.process_time() - start < 20


@needs_docs
def test_every_picture_is_on_a_page():
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    used = set(re.findall(r"^\.\. plot:: (\S+)$", text, re.MULTILINE))
    figures = {f"figures/{figure.name}" for figure in FIGURES}
    scripts = {f"../{s.relative_to(ROOT).as_posix()}" for s in SCRIPTS}
    assert figures <= used <= figures | scripts


@needs_docs
@pytest.mark.parametrize("page", [*PAGES, "../README.md"])
def test_ten_lines_are_ten(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    after = re.search(r"^(?:## )?Ten lines\n(.*)", text, re.MULTILINE | re.DOTALL)
    if not after:
        return
    code = re.search(r"```python\n(.*?)```", after[1], re.DOTALL)
    if code is None:  # up to the next heading
        code = re.match(r"-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", after[1], re.M | re.DOTALL)
        lines = re.findall(r"^(?:>>>|\.\.\.) ", code[1], re.MULTILINE)
    else:
        lines = code[1].splitlines()
    assert 1 <= len(lines) <= 10


@needs_docs
@pytest.mark.parametrize("page", [p for p in PAGES if p.startswith("guide/")])
def test_first_example_of_the_guide_is_short(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    code = re.search(r"^>>> (?:.+\n)+", text, re.MULTILINE)  # up to a blank line
    if code is None or page == "guide/blocks.rst":  # which announces thirty lines
        return
    assert len(re.findall(r"^(?:>>>|\.\.\.) ", code[0], re.MULTILINE)) <= 15


# -- names of other projects -----------------------------------------------------------
@pytest.fixture
def inventories(monkeypatch):
    folder = DOCS / "_extensions"
    if not folder.exists():
        pytest.skip("the docs folder is not there")
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module("inventories")


def test_inventories_that_cannot_be_fetched_are_left_out(inventories, tmp_path):
    missing = {"numpy": tmp_path.as_uri() + "/nowhere/"}
    assert inventories.fetch(tmp_path / "kept", missing) == {}


def test_inventories_are_kept_for_builds_without_a_network(inventories, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    whole = b"# Sphinx inventory version 2\n# x\n# y\n# using zlib.\n"
    whole += zlib.compress(b"numpy.array py:function 1 array.html -\n")
    (site / "objects.inv").write_bytes(whole)
    address = {"numpy": site.as_uri() + "/"}
    first = inventories.fetch(tmp_path / "kept", address)
    assert pathlib.Path(first["numpy"][1]).read_bytes() == whole
    (site / "objects.inv").write_bytes(b"<html>Please sign in</html>")
    assert inventories.fetch(tmp_path / "kept", address) == first
    assert pathlib.Path(first["numpy"][1]).read_bytes() == whole
    (site / "objects.inv").unlink()
    assert inventories.fetch(tmp_path / "kept", address) == first


# -- docstrings ------------------------------------------------------------------------
@pytest.mark.parametrize("name, thing", PUBLIC)
def test_every_parameter_is_documented(name, thing):
    undocumented = []
    for label, function in [(name, thing), *methods(thing)]:
        text = inspect.getdoc(function) or ""
        assert text.strip(), f"{label} has no docstring"
        for parameter in named_parts(function):
            listed = rf"^(?:.*, )?\*{{0,2}}{parameter}(?:,.*)?(?: : .*)?$"
            if parameter != "self" and not re.search(listed, text, re.MULTILINE):
                undocumented.append(f"{label}({parameter})")
    assert not undocumented


def value_of(text):
    """Value that a docstring names as a default; the text if it names no value."""
    try:
        return eval(text, {"inf": np.inf, "np": np})
    except (SyntaxError, NameError):
        return text


@pytest.mark.parametrize("name, thing", PUBLIC)
def test_documented_defaults_are_those_of_the_signature(name, thing):
    for label, function in [(name, thing), *methods(thing)]:
        text = inspect.getdoc(function) or ""
        parameters = named_parts(function) and inspect.signature(function).parameters
        for names, shown in re.findall(
            r"^(\S.*) : .*default=(.+)$", text, re.MULTILINE
        ):
            for one in names.replace("*", "").split(", "):
                value = parameters[one].default
                written = getattr(value, "__name__", value)
                assert value_of(shown) in (value, written), (label, one, shown, value)


@pytest.mark.parametrize("name, thing", PUBLIC)
def test_every_public_member_has_a_docstring(name, thing):
    kinds = (classmethod, staticmethod, property, cached_property, type(methods))
    members = vars(thing).items() if inspect.isclass(thing) else ()
    bare = [
        f"{name}.{member}"
        for member, value in members
        if isinstance(value, kinds)
        and not member.startswith("_")
        # `help` would also look among the bases
        and not (getattr(value, "__func__", value).__doc__ or "").strip()
    ]
    assert not bare


def test_a_method_takes_the_docstring_of_the_one_it_replaces():
    from maxent.families import Block, Poisson

    assert Poisson.fit.__doc__.startswith("Maximum-likelihood fit")

    class Mine(Block):
        def mean(self, a):
            """Mine."""

        def log_partition(self, a):
            return 0.0

    assert Mine.mean.__doc__ == "Mine."
    assert Mine.log_partition.__doc__ == Block.log_partition.__doc__


def named_parts(thing):
    """Members of an enumeration, parameters of any other class or function."""
    if inspect.isclass(thing) and issubclass(thing, Enum):
        return list(thing.__members__)
    return list(inspect.signature(thing).parameters)


def methods(thing):
    """Public methods that a class of ours defines itself."""
    if not inspect.isclass(thing):
        return []
    return [
        (f"{thing.__name__}.{name}", getattr(thing, name))
        for name, value in vars(thing).items()
        if not name.startswith("_")
        and isinstance(value, (classmethod, staticmethod, type(methods)))
    ]


# Not asked for: a summary that starts on the second line (GL01), extended summaries
# (ES01), examples and See Also on every method (EX01, SA01), the verb form of the first
# line (SS05, SS06), named single returns (RT02, as in scikit-learn), a sentence beside
# types that say all (PR07, PR08, PR09, RT03 to RT05), and parameters that are described
# together "as for" another function (PR03, PR04).
ASKED = (
    *("GL02", "GL03", "GL05", "GL06", "GL07", "GL09", "GL10", "SS01", "SS02", "SS03"),
    *("SS04", "PR01", "PR02", "PR05", "PR06", "PR10", "RT01", "YD01", "SA02", "SA03"),
    *("SA04", "EX02", "EX03", "EX04"),
)


@pytest.mark.parametrize("name, thing", PUBLIC)
def test_docstring_is_valid_numpydoc(name, thing):
    validate = pytest.importorskip("numpydoc.validate").validate
    found = []
    for label in [name, *(f"{name}.{m.__name__}" for _, m in methods(thing))]:
        report = validate(label)
        if report["docstring"]:  # an empty one is inherited
            asked = set(ASKED)
            if label == name and (is_dataclass(thing) or isinstance(thing, EnumType)):
                asked.discard("PR01")  # fields and members are listed as attributes
            errors = [e for e in report["errors"] if e[0] in asked]
            found += [(label, *error) for error in errors]
    assert not found


@needs_docs
def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([A-Za-z_]\w*)$", text, re.MULTILINE))
    public = {case.id.rpartition(".")[2] for case in PUBLIC}
    assert public <= listed, f"missing: {sorted(public - listed)}"


# -- the whole -------------------------------------------------------------------------
def imports(path):
    """Modules of the package that a module imports, anywhere in its text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@needs_docs
def test_map_of_the_code_has_every_part_and_imports_go_down():
    text = (DOCS / "contributing.rst").read_text(encoding="utf-8")
    (block,) = re.findall(r"text\n\n((?:   .*\n)+)", text)
    floors = [re.findall(r"(\w+)(?:/|\.py)", line) for line in block.splitlines()]
    height = {part: -k for k, line in enumerate(floors) for part in line}
    package = pathlib.Path(maxent.__file__).parent
    parts = {path.relative_to(package).parts[0] for path in package.rglob("*.py")}
    assert parts - {"__init__.py", "__main__.py"} == {
        part if (package / part).is_dir() else f"{part}.py" for part in height
    }
    for path in package.rglob("*.py"):
        part = path.relative_to(package).parts[0].removesuffix(".py")
        for module in imports(path):
            _, _, target = module.partition("maxent.")
            target = target.partition(".")[0]
            if module.startswith("maxent.") and part in height and target != part:
                assert height[target] < height[part], (path, module)


def formula_rows():
    """Rows (formula, file, function) of the table of formulas."""
    text = (DOCS / "contributing.rst").read_text(encoding="utf-8")
    block = re.search(r'   :header: "formula".*\n.*\n\n((?:   ".*\n)+)', text)[1]
    rows = csv.reader(map(str.strip, block.splitlines()), skipinitialspace=True)
    return [(row[0], *(cell.strip("`") for cell in row[1:])) for row in rows]


def defines(path, name):
    """True if a Python or Cython file defines a function, a class or a method."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        signature = rf"^(?:def|cdef|cpdef)\b[^=(]*\b{re.escape(name)}\("
        return bool(re.search(signature, text, re.MULTILINE))
    body = ast.parse(text).body
    for part in name.split("."):
        nodes = [node for node in body if getattr(node, "name", None) == part]
        if not nodes:
            return False
        body = nodes[-1].body
    return True


@needs_docs
def test_formulas_are_where_the_table_says():
    rows = formula_rows()
    assert len(rows) >= 20
    sources = ROOT / "maxent"
    if not sources.is_dir():
        pytest.skip("wheels have no Cython sources")
    for _, file, function in rows:
        path = sources / file
        assert path.is_file(), file
        assert defines(path, function), (file, function)


@needs_docs
def test_files_to_copy_and_their_tests_exist():
    text = (DOCS / "contributing.rst").read_text(encoding="utf-8")
    part = text[text.index("Five things to add") : text.index("What a change needs")]
    package = pathlib.Path(maxent.__file__).parent
    paths = re.findall(r"``(\w[\w/]*/\w+(?:\.\w+)?)``", part)
    assert len(paths) >= 15
    for path in paths:
        assert (ROOT / path).exists() or (package / path).exists(), path
    assert part.count("Copy: ") == part.count("Checked by: ") == 5


@pytest.fixture(scope="module")
def built_pages(tmp_path_factory):
    """Folder of the documentation, built with warnings as errors."""
    for part in (
        *("sphinx", "numpydoc", "matplotlib", "pydata_sphinx_theme"),
        *("sphinx_copybutton", "sphinx_design", "sphinx_gallery"),
    ):
        pytest.importorskip(part)
    tmp_path = tmp_path_factory.mktemp("documentation")
    # a copy, because the reference is generated beside the pages; they quote the others
    for part in ("docs", "maxent/_core", "maxent/cython", "examples"):
        if (ROOT / part).exists():
            unwanted = shutil.ignore_patterns("generated", "gallery", "_build")
            shutil.copytree(ROOT / part, tmp_path / part, ignore=unwanted)
    for part in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / part, tmp_path)
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html"]
    run("-m", "sphinx", *options, tmp_path / "docs", tmp_path / "html")
    return tmp_path / "html"


@needs_docs
@pytest.mark.slow
def test_documentation_builds_without_a_warning(built_pages):
    assert (built_pages / "index.html").exists()


@needs_docs
@pytest.mark.slow
def test_pages_fetch_nothing_from_elsewhere(built_pages):
    loaded = r"<(?:script|img|iframe|link rel=.(?:stylesheet|preload).)[^>]*https?://"
    for page in ("index.html", "guide/classification.html", "gallery/index.html"):
        text = (built_pages / page).read_text("utf-8")
        assert not re.findall(loaded, text), page


@needs_docs
@pytest.mark.slow
def test_every_script_is_in_the_gallery(built_pages):
    text = (built_pages / "gallery" / "index.html").read_text("utf-8")
    for script in SCRIPTS:
        assert f"{script.parent.name}/{script.stem}.html" in text


def public_methods(cls):
    """Names of the methods that users of a class find, scikit-learn's included."""
    found = {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}
    homes = {n: getattr(f, "__module__", None) for n, f in found.items() if callable(f)}
    return {n for n, home in homes.items() if home and home[:6] in ("maxent", "sklear")}


@needs_docs
@pytest.mark.slow
def test_page_of_a_class_shows_every_public_method(built_pages):
    missing = {}
    for case in PUBLIC:
        name, thing = case.values
        if not inspect.isclass(thing) or name.count(".") < 2:
            continue  # the reference has the estimators below their packages
        page = built_pages / "api" / "generated" / f"{name}.html"
        shown = set(re.findall(rf'id="{name}\.(\w+)"', page.read_text("utf-8")))
        if not public_methods(thing) <= shown:
            missing[name] = sorted(public_methods(thing) - shown)
    assert not missing


def test_methods_asked_for_are_those_that_users_find():
    from maxent.discrimination import MEDTreeClassifier
    from maxent.families import Gaussian, NormalInverseWishart

    estimator = {"fit", "predict", "decision_function", "score", "get_params"}
    assert estimator | {"set_params", "sample_trees"} <= public_methods(
        MEDTreeClassifier
    )
    assert {"fit", "log_prob", "sample", "kl"} <= public_methods(Gaussian)
    assert {"posterior", "block", "weak"} <= public_methods(NormalInverseWishart)


# Other people's modules name these: none of them may move.
PUBLIC_DECLARATIONS = {
    *("chain", "chain_pairs", "column_groups", "coordinate", "dual_machine"),
    *("dual_rows", "gram", "laplacian", "potentials", "smo", "statespace"),
    *("system_pairs", "tables"),
}


@needs_docs
def test_page_on_compiled_functions_declares_every_module_of_its_table():
    text = (DOCS / "compiled.rst").read_text(encoding="utf-8")
    table = text[: text.index("These names are part")]
    declared = re.findall(r"^\.\. declarations:: (\w+)$", text, re.MULTILINE)
    listed = set(re.findall(r"``maxent\.cython\.(\w+)``", table))
    assert listed == {*declared, "potentials"}  # which have a table of their own
    package = pathlib.Path(maxent.__file__).parent / "cython"
    assert listed == {path.stem for path in package.glob("*.pxd")} - {"__init__"}
    assert listed == PUBLIC_DECLARATIONS
    assert "_core" not in text


@needs_docs
def test_declarations_are_shown_without_private_names(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    shown = importlib.import_module("public_declarations")
    for name in PUBLIC_DECLARATIONS:
        text = shown.declarations(name)
        assert "_core" not in text
        assert re.search(r"^(?:cdef|ctypedef) ", text, re.MULTILINE)
    assert "from maxent.cython.potentials cimport Potential\n" in shown.declarations(
        "dual_machine"
    )


@needs_docs
@pytest.mark.slow
def test_module_of_the_page_on_compiled_functions_builds(tmp_path, rng):
    pytest.importorskip("Cython")
    import numpy as np

    from maxent.discrimination import LaplaceMargin

    text = (DOCS / "compiled.rst").read_text(encoding="utf-8")
    for name in ("losses.pyx", "setup.py"):
        pattern = rf"``{name}``:\n\n\.\. code-block:: \w+\n\n((?:   .*\n|\n)+)"
        block = re.search(pattern, text).group(1)
        (tmp_path / name).write_text(inspect.cleandoc("\n" + block) + "\n")
    run("setup.py", "build_ext", "--inplace", cwd=tmp_path)
    m = rng.normal(size=20)
    np.save(tmp_path / "m.npy", m)
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "import numpy as np, losses\n"
        "from maxent.discrimination import LaplaceMargin\n"
        "m = np.load('m.npy'); out = np.empty_like(m)\n"
        "losses.losses(LaplaceMargin(5.0), m, out); np.save('out.npy', out)\n"
    )
    run("-c", code, cwd=tmp_path)
    out = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(out, LaplaceMargin(5.0).loss(m))
    assert sys.modules.get("losses") is None  # the test itself loads nothing of it


def test_pages_of_classes_show_their_parameters(extension):
    pytest.importorskip("sphinx")
    pages = extension("reference_pages")
    shown = {}
    for case in PUBLIC:
        name, thing = case.values
        if inspect.isclass(thing):
            call = (None, "class", name, thing, None, "(*args, **kwargs)", None)
            shown[name], _ = pages.own_signature(*call)
    assert shown["maxent.MEDClassifier"].startswith("(kernel='rbf', C=1.0, *, margin=")
    assert not [name for name, text in shown.items() if text == "(*args, **kwargs)"]


# -- side bar, heads of pages ----------------------------------------------------------
@pytest.fixture
def extension(monkeypatch):
    """Function that imports an extension of the documentation by its name."""
    if not (DOCS / "_extensions").exists():
        pytest.skip("the docs folder is not there")
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    return importlib.import_module


def test_side_bar_has_every_name_of_the_reference(extension):
    sidebar = extension("reference_sidebar")
    text = sidebar.INDEX.read_text(encoding="utf-8")
    groups = sidebar.groups(text)
    shown = [
        name for kinds in groups.values() for names in kinds.values() for name in names
    ]
    assert shown == re.findall(r"^   (\w+)$", text, re.MULTILINE)
    for package, kinds in groups.items():
        assert "" not in kinds or len(kinds) == 1, package  # each table has its kind
        assert max(map(len, kinds.values())) <= 20, package


def test_heads_of_pages_have_addresses_once_there_is_one(extension):
    pytest.importorskip("docutils")
    from docutils import nodes

    heads = extension("page_heads")
    paragraph = nodes.paragraph("", 'What "it" does, & why. ' * 20)
    tree = nodes.section("", nodes.title("", "A page"), paragraph)

    class App:
        class config:
            project, html_baseurl = "maxent", ""

    for base in ("", "https://maxent.example/docs/"):
        App.config.html_baseurl = base
        context = {
            "title": "A &amp; <code>B</code>",
            "pageurl": f"{base}a.html" if base else None,
        }
        heads.add_tags(App, "a", "page.html", context, tree)
        tags = context["metatags"]
        assert ("og:url" in tags) == ("og:image" in tags) == bool(base)
        assert 'content="What &quot;it&quot; does, &amp; why.' in tags
        assert 'property="og:title" content="A &amp; B"' in tags
        longest = max(re.findall(r'content="([^"]*)"', tags), key=len)
        assert len(html.unescape(longest)) <= heads.LONGEST + 2
