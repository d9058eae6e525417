"""Every public signature is annotated, and type checkers see what is exported."""

import ast
import functools
import importlib
import inspect
import pathlib
import runpy

import pytest
from checks import user_types

import maxent
from maxent._support.lazy import home

PACKAGES = ("maxent", *(f"maxent.{n}" for n in maxent._SUBPACKAGES))


def checked_imports(package):
    """Name -> full name, of the imports that only type checkers read."""
    source = pathlib.Path(importlib.import_module(package).__file__)
    tree = ast.parse(source.read_text(encoding="utf-8"))
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    assert len(blocks) == 1, f"{package} has {len(blocks)} blocks for type checkers"
    found = {}
    for node in blocks[0].body:
        assert isinstance(node, ast.ImportFrom), ast.unparse(node)
        assert node.level == 0
        for alias in node.names:
            # only a redundant alias is an export, by PEP 484
            assert alias.asname == alias.name, f"{package}: {alias.name}"
            assert alias.name not in found, f"{package}: {alias.name} twice"
            found[alias.name] = f"{node.module}.{alias.name}"
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_what_is_exported(package):
    module = importlib.import_module(package)
    table = {
        name: f"{home(package, where)}.{name}"
        for where, names in module._HOMES.items()
        for name in names
    }
    table.update({name: f"{package}.{name}" for name in subpackages_of(module)})
    assert checked_imports(package) == table
    own = {"__version__"} if package == "maxent" else set()
    assert set(module.__all__) == set(table) | own


def subpackages_of(module):
    return getattr(module, "_SUBPACKAGES", ())


# -- annotations -----------------------------------------------------------------------
def public_objects():
    """Cases (name, object): every function and class that users import."""
    out = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                out[f"{thing.__module__}.{name}"] = thing
    return out


PUBLIC = public_objects()


def signatures(thing):
    """Pairs (name, function): a function, or what the classes of ours define."""
    if not inspect.isclass(thing):
        return [(thing.__qualname__, thing)]
    found = []
    for cls in inspect.getmro(thing):
        if not cls.__module__.startswith("maxent"):
            continue
        for name, value in vars(cls).items():
            function = plain_function(value)
            if function is None or function.__module__ != cls.__module__:
                continue  # a dataclass's own, or no function
            if name == "__init__" or not name.startswith("_"):
                found.append((f"{cls.__module__}.{cls.__qualname__}.{name}", function))
    return found


def plain_function(value):
    """The function inside a method, property or the like; None for anything else."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, functools.cached_property):
        value = value.func
    if hasattr(value, "__wrapped__"):  # of a decorator, such as `available_if`
        value = inspect.unwrap(value)
    return value if inspect.isfunction(value) else None


def lacking(function):
    """What of a signature has no annotation."""
    missing, signature = [], inspect.signature(function)
    for k, (name, parameter) in enumerate(signature.parameters.items()):
        is_self = k == 0 and name in ("self", "cls")
        if not is_self and parameter.annotation is inspect.Parameter.empty:
            missing.append(name)
    if signature.return_annotation is inspect.Signature.empty:
        missing.append("return")
    return missing


def test_every_public_signature_is_annotated():
    bare = {}
    for thing in PUBLIC.values():
        for name, function in signatures(thing):
            if lacking(function):
                bare[f"{function.__module__}: {name}"] = lacking(function)
    assert not bare


def test_a_signature_without_types_is_seen():
    def function(a: int, b, *, c=3, **more: int):
        return a

    assert lacking(function) == ["b", "c", "return"]


# -- the check of types ----------------------------------------------------------------
SCRIPTS = sorted((pathlib.Path(__file__).parent / "typing").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_whose_types_are_checked_runs(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "matplotlib" in script.read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib")
    runpy.run_path(str(script))


def test_code_of_a_page_stands_on_its_lines(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text(
        "Text\n\n>>> a = [1,\n...      2]\n>>> a[0]\n1\n\n"
        ">>> a[2]\nTraceback (most recent call last):\n    ...\nIndexError: no\n"
    )
    expected = ["", "", "a = [1,", "     2]", "a[0]"]
    assert user_types.code_of(page).split("\n")[:8] == [*expected, "", "", ""]
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nb = 1\n```\n\n```bash\nls\n```\n")
    assert user_types.code_of(page).split() == ["b", "=", "1"]
    assert user_types.code_of(page).split("\n")[3] == "b = 1"


def test_mistakes_that_are_not_reported_and_reports_of_no_mistake_are_seen(tmp_path):
    path = tmp_path / "mistakes.py"
    path.write_text("f(1)\nf(c=3)  # error\nf(d=3)  # error\n")
    errors = [(path, 1, "unexpected"), (path, 2, "no parameter c")]
    missed = user_types.missed(path, errors)
    assert [(line, text) for _, line, text in missed] == [
        (3, "is not reported"),
        (1, "unexpected"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_refuse_every_mistake(checker):
    pytest.importorskip(checker)
    settings = ["--config-file", user_types.SCRIPTS / "mypy.ini"]
    for path in sorted(user_types.SCRIPTS.glob("errors/*.py")):
        options = settings if checker == "mypy" else []
        errors = getattr(user_types, checker)(*options, path)
        assert user_types.missed(path, errors) == []
