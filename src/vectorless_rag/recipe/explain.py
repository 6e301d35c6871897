"""Why two recipes differ, in words."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from vectorless_rag.canon import Json
from vectorless_rag.recipe.key import Recipe

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHOWN_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One input that two recipes do not share."""

    field: str
    before: Json
    after: Json

    words: str
    """The difference, for people."""

    def to_json(self) -> dict[str, Json]:
        """Spell the difference."""
        return asdict(self)


def explain(
    before: Recipe,
    after: Recipe,
    *,
    patches_before: Mapping[str, str] | None = None,
    patches_after: Mapping[str, str] | None = None,
) -> list[Difference]:
    """
    Say which inputs differ; an empty list means one key.

    Args:
        before: One recipe.
        after: The other.
        patches_before: Digest of each patch by name, in order, where it is known.
            With both given, single patches are named if the series differ.
        patches_after: The same of the other recipe.
    """
    old, new = _flat(before), _flat(after)
    changes = [
        Difference(
            field=name,
            before=old[name],
            after=new[name],
            words=_words(name, old[name], new[name]),
        )
        for name in old
        if old[name] != new[name]
    ]
    # A patch may change in its prose alone, and that decides nothing.
    same = before.configuration.patch_sha256 == after.configuration.patch_sha256
    if not same and patches_before is not None and patches_after is not None:
        changes += _patch_changes(patches_before, patches_after)
    return changes


def _flat(recipe: Recipe) -> dict[str, Json]:
    document: Json = recipe.document_sha256
    return {**recipe.configuration.to_json(), "document_sha256": document}


_NAMES = {
    "document_sha256": "document",
    "patch_sha256": "patch series",
    "runtime_sha256": "runtime code",
    "tree_sha256": "patched upstream tree",
    "api_base_sha256": "server address",
    "max_output_tokens": "max output tokens",
    "call_attempts": "call attempts",
    "pageindex_version": "pageindex",
    "schema_version": "schema version",
}


def _words(name: str, before: Json, after: Json) -> str:
    shown = f"{_shown(before)} → {_shown(after)}"
    if name in {"pypdf", "pypdfium2", "pageindex_version"}:
        return f"{_NAMES.get(name, name)} {shown}"
    return f"{_NAMES.get(name, name)} changed: {shown}"


def _shown(value: Json) -> str:
    if value is None:
        return "default"
    text = str(value)
    return text[:_SHOWN_DIGITS] if _SHA256.fullmatch(text) else text


def _patch_changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            verb = "added" if old is None else "dropped" if new is None else "changed"
            number, _, title = name.removesuffix(".patch").partition("-")
            words = f"patch {number} {verb} ({title})"
            yield Difference(field=f"patch/{name}", before=old, after=new, words=words)
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    if kept_before != kept_after:
        yield Difference(
            field="patch_order",
            before=kept_before,
            after=kept_after,
            words="patches in another order",
        )
