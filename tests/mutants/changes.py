"""Small wrong changes of a source file, one at a time.

A change replaces the text of one expression or statement. Texts for people, docstrings,
annotations, imports, decorators, abstract methods and what a `raise` or a warning says
stay as they are.
"""

from __future__ import annotations

import ast
import copy
import itertools
import random
from dataclasses import dataclass

OPERATORS = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.BitXor: [ast.BitOr],
}
COMPARISONS = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
# What these calls are given is read by people.
TELLING = {"warn", "warn_explicit", "tell"}
# Keywords that change what is shown, not what is computed.
SHOWN = {"stacklevel"}


@dataclass(frozen=True)
class Change:
    """One wrong change.

    Attributes
    ----------
    file : str
        Path below the root of the checkout.
    line, column : int
        Where what is replaced begins, from 1 and from 0.
    kind : str
        Name of one of the functions of `KINDS`.
    where : str
        Function or class around it, with dots.
    statement : str
        First line of the statement around it, stripped.
    before, after : str
        Text that is replaced, and its replacement.
    start, end : int
        Place of `before` in the bytes of the file.
    first, last : int
        Lines of the statement, of a compound one as far as the end of `before`.
    """

    file: str
    line: int
    column: int
    kind: str
    where: str
    statement: str
    before: str
    after: str
    start: int
    end: int
    first: int
    last: int

    def applied(self, source: bytes) -> bytes:
        """Source with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


# -- kinds: (node, node above) -> replacements of the node -----------------------------
def operators(node, above):
    """Another arithmetic or set operator."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        for kind in OPERATORS.get(type(node.op), []):
            yield changed(node, op=kind())


def terms(node, above):
    """A sum without one of its terms."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield node.left
        if isinstance(node.op, ast.Add):
            yield node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield ast.Pass()


def constants(node, above):
    """Another number, or the other truth value."""
    if isinstance(node, ast.Constant) and not isinstance(above, ast.Slice):
        value = node.value
        if isinstance(value, bool):
            yield ast.Constant(not value)
        elif isinstance(value, int):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        elif isinstance(value, float):
            yield ast.Constant(2.0 * value if value else 1.0)


def indices(node, above):
    """An index, or a bound of a slice, one higher or lower."""
    ends = [node.lower, node.upper] if isinstance(node, ast.Slice) else []
    for name, end in zip(("lower", "upper"), ends):
        if isinstance(end, (ast.Constant, ast.Name, ast.UnaryOp)):
            for op in (ast.Add(), ast.Sub()):
                yield changed(node, **{name: ast.BinOp(end, op, ast.Constant(1))})


def comparisons(node, above):
    """Another comparison."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for kind in COMPARISONS.get(type(node.ops[0]), []):
            yield changed(node, ops=[kind()])


def booleans(node, above):
    """`and` for `or`, `or` for `and`, and no `not`."""
    if isinstance(node, ast.BoolOp):
        yield changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        yield node.operand


def signs(node, above):
    """No minus."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand


def branches(node, above):
    """The other branch, or one of them always."""
    if isinstance(above, (ast.If, ast.IfExp)) and node is above.test:
        yield ast.UnaryOp(ast.Not(), node)
        yield from (ast.Constant(True), ast.Constant(False))
    if isinstance(above, ast.While) and node is above.test:
        yield ast.UnaryOp(ast.Not(), node)


def arguments(node, above):
    """Two neighbouring arguments in the other order."""
    if isinstance(node, ast.Call):
        for i, pair in enumerate(zip(node.args, node.args[1:])):
            same = ast.dump(pair[0]) == ast.dump(pair[1])
            if not same and not any(isinstance(x, ast.Starred) for x in pair):
                swapped = [*node.args[:i], pair[1], pair[0], *node.args[i + 2 :]]
                yield changed(node, args=swapped)


KINDS = (
    *(operators, terms, constants, indices, comparisons),
    *(booleans, signs, branches, arguments),
)


def changed(node, **fields):
    """A copy of a node with other fields."""
    node = copy.copy(node)
    for name, value in fields.items():
        setattr(node, name, value)
    return node


# -- where -----------------------------------------------------------------------------
def is_for_people(node):
    """Whether nothing is computed in a node, or only what people read."""
    if isinstance(node, ast.Call):
        return name_of(node.func) in TELLING
    if isinstance(node, ast.FunctionDef):
        return "abstractmethod" in map(name_of, node.decorator_list)
    if isinstance(node, ast.If):
        return name_of(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg in SHOWN
    texts = (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.JoinedStr)
    return isinstance(node, texts)


def name_of(node):
    """Last name of a name with dots, or nothing."""
    return getattr(node, "attr", getattr(node, "id", ""))


def below(node):
    """Nodes below a node in which something is computed."""
    unseen = {"annotation", "returns", "decorator_list", "type_params"}
    for name, value in ast.iter_fields(node):
        if name not in unseen:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield child


def walk(node, above=None, where=(), statement=None):
    """(node, node above, names around, statement around) of what is computed."""
    if is_for_people(node):
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        where = (*where, node.name)
    if isinstance(node, ast.stmt):
        statement = node
    yield node, above, where, statement
    for child in below(node):
        yield from walk(child, node, where, statement)


def changes_of(file: str, source: bytes) -> list[Change]:
    """All changes of a file, in a fixed order."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.decode().splitlines()
    out = []
    for node, above, where, statement in walk(ast.parse(source)):
        if not hasattr(node, "end_col_offset"):
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        for kind in KINDS:
            for new in kind(node, above):
                after = ast.unparse(ast.fix_missing_locations(copy.deepcopy(new)))
                if isinstance(node, ast.expr) and not isinstance(node, ast.Slice):
                    after = f"({after})"
                change = Change(
                    *(file, node.lineno, node.col_offset),
                    *(kind.__name__, ".".join(where)),
                    lines[statement.lineno - 1].strip(),
                    source[start:end].decode(),
                    *(after, start, end, statement.lineno, node.end_lineno),
                )
                out.append(change)
    return out


def compiles(source: bytes) -> bool:
    """Whether a source is Python, which a few replacements are not."""
    try:
        compile(source, "<changed>", "exec")
    except SyntaxError:
        return False
    return True


def sample(sources: dict[str, bytes], count: int, seed: int) -> list[Change]:
    """Random changes of some files, each place and kind of change alike.

    The same sources and seed give the same changes, and the first ones of a larger
    sample are those of a smaller one.
    """
    places: dict[tuple, list[Change]] = {}
    for file in sorted(sources):
        for change in changes_of(file, sources[file]):
            key = (file, change.start, change.end, change.kind)
            places.setdefault(key, []).append(change)
    rng = random.Random(seed)
    keys = sorted(places)
    rng.shuffle(keys)
    drawn = (rng.choice(places[key]) for key in keys)
    valid = (
        change for change in drawn if compiles(change.applied(sources[change.file]))
    )
    return list(itertools.islice(valid, count))
