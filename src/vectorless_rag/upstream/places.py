"""Where in a Python file a change lands, and which statement binds a name last."""

import ast
import hashlib
from collections.abc import Iterator, Sequence

from vectorless_rag.units import Sha256
from vectorless_rag.upstream.diff import FileChange, Run

MODULE = "<module>"
"""The place of lines that stand in no definition."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def source_sha256(data: bytes, qualname: str) -> Sha256:
    """
    Digest the source of one function, from its first decorator to its last line.

    Raw text and not ``ast.dump``, whose output differs between Python versions.

    Args:
        data: The file's bytes.
        qualname: ``extract_json`` or ``LocalAPI.method``.

    Raises:
        ValueError: No definition, or more than one, has this name.
        SyntaxError: The file is no Python.
    """
    scope: list[ast.stmt] = ast.parse(data).body
    node: _Definition | None = None
    for part in qualname.split("."):
        named = [n for n in scope if isinstance(n, _DEFINITIONS) and n.name == part]
        if len(named) != 1:
            raise ValueError(f"{qualname} is defined {len(named)} times")
        node = named[0]
        scope = node.body
    if node is None:
        raise AssertionError("split gives at least one part")
    first, last = _span(node)
    lines = data.splitlines(keepends=True)[first - 1 : last]
    return Sha256(hashlib.sha256(b"".join(lines)).hexdigest())


def last_binding(data: bytes, qualname: str) -> int:
    """
    Return the line of the statement that binds *qualname* last.

    Definitions, imports, assignments and deletions count, also inside ``if``,
    ``try``, ``for``, ``while`` and ``with``; for ``Class.method`` those in the
    class body and ``Class.method = ...`` after it. A star import may bind
    anything, so it counts too.

    Raises:
        ValueError: Nothing binds it.
        SyntaxError: The file is no Python.
    """
    module = ast.parse(data).body
    lines = [s.lineno for s in _statements(module) if qualname in _bound(s)]
    owner, _, name = qualname.rpartition(".")
    for statement in _statements(module):
        if isinstance(statement, ast.ClassDef) and statement.name == owner:
            inner = _statements(statement.body)
            lines += [s.lineno for s in inner if name in _bound(s)]
    if owner:
        # A class that is bound again takes its methods with it.
        lines += [s.lineno for s in _statements(module) if owner in _rebound(s)]
    if not lines:
        raise ValueError(f"nothing binds {qualname}")
    return max(lines)


def places(change: FileChange, before: bytes, after: bytes) -> tuple[str, ...]:
    """
    Name where each run of a change lands, in order and each name once.

    Returns:
        The outermost function or class around the changed lines; for lines of
        the module, the definition they follow: ``<module> after name``. Where
        the old and the new lines lie differently, both: ``old -> new``. Files
        that are no Python have the one place ``<file>``.
    """
    if not change.path.endswith(".py"):
        return ("<file>",)
    old, new = _outermost(before), _outermost(after)
    return tuple(dict.fromkeys(_place(run, old, new) for run in change.runs))


def definition_around(data: bytes, line: int) -> tuple[str, int, int] | None:
    """
    Find the outermost function or class around a line.

    Returns:
        Its name, first and last line; None for a line of the module itself.

    Raises:
        SyntaxError: The file is no Python.
    """
    for node in _outermost(data):
        first, last = _span(node)
        if first <= line <= last:
            return node.name, first, last
    return None


def enclosing(data: bytes, first: int, last: int) -> str:
    """
    Name the innermost function or class around some lines.

    Args:
        data: The file's bytes.
        first: Number of the first line, from 1.
        last: Number of the last one.

    Returns:
        ``name`` or ``Class.method``; `MODULE` for lines of no one definition.

    Raises:
        SyntaxError: The file is no Python.
    """
    scope: Sequence[ast.stmt] = ast.parse(data).body
    names: list[str] = []
    while True:
        inner = [n for n in _statements(scope) if isinstance(n, _DEFINITIONS)]
        spans = [(node, *_span(node)) for node in inner]
        around = [n for n, start, end in spans if start <= first and last <= end]
        if not around:
            return ".".join(names) or MODULE
        names.append(around[0].name)
        scope = around[0].body


def _place(run: Run, old: Sequence[_Definition], new: Sequence[_Definition]) -> str:
    sides = [
        _holder(definitions, start, start + len(lines) - 1)
        for definitions, start, lines in (
            (old, run.old_start, run.old),
            (new, run.new_start, run.new),
        )
        if lines
    ]
    return " -> ".join(dict.fromkeys(sides))


def _holder(definitions: Sequence[_Definition], first: int, last: int) -> str:
    inside: list[str] = []
    follows = ""
    for node in definitions:
        start, end = _span(node)
        if start <= last and first <= end:
            inside.append(node.name)
        elif end < first:
            follows = node.name
    if inside:
        return ", ".join(inside)
    return f"{MODULE} after {follows}" if follows else MODULE


def _outermost(data: bytes) -> list[_Definition]:
    module = ast.parse(data).body
    found = [n for n in _statements(module) if isinstance(n, _DEFINITIONS)]
    return sorted(found, key=lambda node: node.lineno)


def _span(node: _Definition) -> tuple[int, int]:
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Walk the statements of one scope, into blocks but not into definitions."""
    for statement in body:
        yield statement
        if isinstance(statement, _DEFINITIONS):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, field, []))
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body)
        for case in getattr(statement, "cases", []):
            yield from _statements(case.body)


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    return _rebound(statement)


def _rebound(statement: ast.stmt) -> set[str]:
    """Names a statement binds by other means than a definition."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            if any(alias.name == "*" for alias in names):
                return _Everything()
            return {alias.asname or alias.name.partition(".")[0] for alias in names}
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return {name for target in targets for name in _names(target)}
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return set(_names(target))
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return set(_names(target))
        case _:
            return set()


class _Everything(set[str]):
    """What a star import may bind."""

    def __contains__(self, name: object) -> bool:
        return True


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            yield f"{owner}.{name}"
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _names(part)
        case _:
            return
