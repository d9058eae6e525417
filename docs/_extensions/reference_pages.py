"""What a class's page in the reference shows: every public method, and linked bases.

Methods of this package are shown in full, inherited ones too. Of methods that
scikit-learn defines the page has the signature and the first sentence: the rest of
their text refers to pages of scikit-learn's documentation.
"""

from __future__ import annotations

import abc
import functools
import importlib
import inspect
import re

from sphinx.util.inspect import stringify_signature

import maxent


@functools.cache
def public_names():
    """Class -> the name under which the reference has it."""
    names = {}
    for package in maxent._SUBPACKAGES:
        module = importlib.import_module(f"maxent.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                names[thing] = f"maxent.{package}.{name}"
    return names


def home(member):
    """Top-level package that defines a method or a property, or ""."""
    if isinstance(member, property):
        member = member.fget
    member = getattr(member, "func", member)  # of a cached property
    return (getattr(member, "__module__", None) or "").partition(".")[0]


def skip_member(app, what, name, obj, skip, options):
    """Leave out what neither this package nor scikit-learn defines."""
    if what != "class" or skip:
        return None  # as autodoc would
    return None if home(obj) in ("maxent", "sklearn") else True


def shown_bases(cls):
    """Bases as the page shows them: public ones as links, in place of private ones."""
    out = []
    for base in cls.__bases__:
        name = f"{base.__module__}.{base.__qualname__}"
        if base in public_names():
            out.append(f":py:class:`~{public_names()[base]}`")
        elif home(base) == "maxent":
            out += shown_bases(base)
        elif home(base) == "sklearn":
            out.append(f":py:class:`~{name}`")
        elif base not in (object, abc.ABC):
            out.append(f"``{name.removeprefix('builtins.')}``")
    return list(dict.fromkeys(out))


def process_bases(app, name, obj, options, bases):
    """Give autodoc the bases of a class in the place of those in its source."""
    bases[:] = shown_bases(obj) or ["``object``"]


def shorten(app, what, name, obj, options, lines):
    """First paragraph of scikit-learn's docstrings, and where they come from."""
    if what in ("method", "property", "attribute") and home(obj) == "sklearn":
        end = lines.index("") if "" in lines else len(lines)
        # references into scikit-learn's documentation become plain text
        text = re.sub(r":\w+:`([^`<]+?)\s*<[^`]*>`", r"\1", "\n".join(lines[:end]))
        text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)
        lines[:] = [*text.split("\n"), "", "From scikit-learn, which has the details."]


def own_signature(app, what, name, obj, options, signature, return_annotation):
    """Signature of a class with a ``__new__`` that hides the parameters of its own."""
    if what != "class" or not (signature or "").startswith("(*args"):
        return None
    own = stringify_signature(inspect.signature(obj), show_annotation=False)
    return own, return_annotation


def setup(app):
    """Connect to autodoc, before numpydoc parses the docstrings."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-bases", process_bases)
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-process-docstring", shorten, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
