"""The report as one HTML file that asks nobody for anything."""

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files

from vectorless_rag.reporting.checks import failures, verification
from vectorless_rag.reporting.code import patches, recipes, staleness
from vectorless_rag.reporting.documents import Shelf, documents
from vectorless_rag.reporting.facts import Facts
from vectorless_rag.reporting.markup import Html, cut, embedded, h
from vectorless_rag.reporting.overview import header, navigation
from vectorless_rag.reporting.spending import spending

GENERATOR = "vectorless-rag audit report"

HEAD = Html(
    "<!doctype html>\n"
    '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    f'<meta name="generator" content="{GENERATOR}">\n'
)
"""How every report begins; a file that begins so may be replaced by a newer one."""


def page(report: Facts, shelf: Shelf) -> Iterator[str]:
    """
    Yield a report piece by piece, at most one document's tree at a time.

    Args:
        report: What to say.
        shelf: Where the trees are.
    """
    # Both once: the policy names their digests long before the script's turn.
    style, script = _resource("page.css"), _resource("page.js")
    yield HEAD
    yield _rest_of_head(report, style, script)
    yield '\n<body>\n<a class="skip" href="#documents">Skip to the documents</a>\n'
    yield header(report)
    yield navigation()
    yield "\n<main>\n"
    for piece in documents(report, shelf):
        yield piece + "\n"
    for part in (
        spending(report.ledger),
        failures(report),
        staleness(report),
        recipes(report),
        patches(report.code),
        verification(report),
    ):
        yield part + "\n"
    yield "</main>\n"
    yield _footer(report)
    yield embedded("script", script)
    yield "\n</body>\n</html>\n"


def _rest_of_head(report: Facts, style: str, script: str) -> Html:
    # Nothing from anywhere, and of what stands inside only these two texts.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    return Html(
        "\n".join(
            [
                h("meta", http_equiv="Content-Security-Policy", content=policy),
                h("meta", name_="referrer", content="no-referrer"),
                h(
                    "meta",
                    name_="viewport",
                    content="width=device-width, initial-scale=1",
                ),
                h("meta", name_="color-scheme", content="light dark"),
                h("title", f"Audit of {cut(report.folder, 100)}, {report.made_at:%F}"),
                embedded("style", style),
                "</head>",
            ]
        )
    )


def _footer(report: Facts) -> Html:
    version = f"vectorless-rag {report.version}"
    words = (
        " made this page from the store, the ledger and the build. It holds document"
        " titles and summaries: treat it like the documents. Nothing in it is signed."
    )
    return h("footer", h("p", version, words))


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
