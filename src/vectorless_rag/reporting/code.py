"""What the artifacts were made by: recipes, patches, and what would change today."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from vectorless_rag.reporting.facts import (
    CodeFacts,
    DocumentFacts,
    Facts,
    PatchFacts,
    RecipeFacts,
)
from vectorless_rag.reporting.markup import Child, Html, cut, h
from vectorless_rag.reporting.spelling import (
    digest,
    facts,
    folded,
    plural,
    prose,
    section,
)
from vectorless_rag.reporting.trees import LONGEST_TITLE

_NAMED = 200
"""Documents of one group that are named; the rest is counted."""


def staleness(report: Facts) -> Html:
    """List what the current build and settings would make otherwise, by reason."""
    return section("stale", "Staleness", *_staleness(report))


def _staleness(report: Facts) -> Iterator[Html]:
    now = report.code.configuration
    if now is None:
        why = report.code.failure.message if report.code.failure else ""
        yield h(
            "p", "Unknown: there is no sound build to ask. ", prose(why), class_="bad"
        )
        return
    yield h(
        "p",
        f"Compared with pageindex {now.pageindex_version}, {now.model}, mode"
        f" {now.mode}: the build and the settings this report was made under.",
    )
    if not report.stale:
        words = "Every current artifact is the one they would make."
        yield h("p", words, class_="good" if report.documents else "none")
        return
    groups: defaultdict[tuple[str, ...], list[DocumentFacts]] = defaultdict(list)
    for document in report.stale:
        groups[document.changes or ()].append(document)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    yield h("ul", [_group(*group) for group in ordered], class_="groups")


def _group(changes: tuple[str, ...], documents: Sequence[DocumentFacts]) -> Html:
    names = [
        h("li", h("bdi", cut(document.name, LONGEST_TITLE) or "(no name)"))
        for document in documents[:_NAMED]
    ]
    more = len(documents) - len(names)
    return h(
        "li",
        h("ul", [h("li", words) for words in changes], class_="why"),
        folded(
            plural(len(documents), "document"),
            h("ul", names, class_="names"),
            h("p", f"and {more:,} more") if more else None,
        ),
    )


def recipes(report: Facts) -> Html:
    """List the configurations that current artifacts were made with."""
    found = [_recipe(recipe) for recipe in report.recipes]
    nothing = h("p", "No artifact, no recipe.", class_="none")
    return section("recipes", "Recipes", found or nothing)


def _recipe(recipe: RecipeFacts) -> Html:
    options = recipe.configuration
    flag = h("span", "would run now", class_="flag good") if recipe.running else None
    head: list[Child] = [
        h("span", f"{options.model}, {options.mode}", class_="name"),
        flag,
        h(
            "span",
            f"{plural(recipe.documents, 'document')} · pageindex ",
            f"{options.pageindex_version} · configuration ",
            digest(options.configuration_hash),
            class_="line",
        ),
    ]
    pairs = [(name, _option(value)) for name, value in options.to_json().items()]
    return folded(head, facts(pairs, class_="facts raw"), class_="fold entry")


def _option(value: object) -> Child:
    # A digest is shown whole here: this is where one is looked up.
    return h("span", "default") if value is None else h("code", str(value))


def patches(code: CodeFacts) -> Html:
    """List the patches, what breaks without each, and what proves it."""
    if not code.patches and code.failure is not None:
        return section(
            "patches", "Patches", h("p", prose(code.failure.message), class_="bad")
        )
    intro = h(
        "p",
        "Applied to the pinned PageIndex, in this order. Each says what breaks"
        " without it, and names tests that fail before it and pass after it.",
    )
    items = [_patch(patch) for patch in code.patches]
    return section("patches", "Patches", intro, h("ol", items, class_="patches"))


def _patch(patch: PatchFacts) -> Html:
    proofs = [h("li", h("code", proof)) for proof in patch.proofs]
    paragraphs = [h("p", part) for part in patch.prose.split("\n\n")]
    trailers = [("Upstream status", patch.upstream_status)]
    trailers.append(("May go when", patch.drop_when))
    return h(
        "li",
        h("p", h("b", patch.id, class_="no"), h("b", patch.title), class_="head"),
        h("p", patch.reason),
        folded(
            f"The whole reason, and {plural(len(patch.proofs), 'proof')}",
            paragraphs,
            facts(trailers),
            h("ul", proofs, class_="proofs"),
        ),
    )
