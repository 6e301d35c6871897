"""Words of the document, of replies and of keys stay where they belong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.program import run
from acceptance.test_provider import TITLES, sensible
from fault_server import Fault, completion, serving
from otlp_receiver import receiving
from pdfs import pdf

pytestmark = pytest.mark.loopback

KEY = "sk-canary-of-the-key"
TRACING_KEY = "sk-lf-canary-of-tracing"
IN_DOCUMENT = "canary-in-the-document"
IN_REPLY = "canary-in-the-reply"
# The upstream's own wording, which stands in the prompt alone.
IN_PROMPT = "hierarchical tree structure"
CONTENT = (IN_DOCUMENT, IN_REPLY, IN_PROMPT)
SECRETS = (KEY, TRACING_KEY)
BODY = "\n".join(f"Line {n} tells of the {IN_DOCUMENT}." for n in range(30))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    pdf(tmp_path / "a.pdf", [f"{i} {t}\n{BODY}" for i, t in enumerate(TITLES, 1)])
    return tmp_path


def talkative(number: int, body: dict[str, Any]) -> Fault:
    """Put the canary into every answer that has room for it."""
    said = json.loads(sensible(number, body).body)["choices"][0]["message"]["content"]
    if '"summary"' in said:
        said = json.dumps({"summary": f"It tells of the {IN_REPLY}."})
    return completion(said)


def stubborn(number: int, body: dict[str, Any]) -> Fault:
    """Never summarise, and say so at length."""
    said = talkative(number, body)
    return completion(f"No: {IN_REPLY}") if b"summary" in said.body else said


def quoting(_number: int, body: dict[str, Any]) -> Fault:
    """Refuse, and quote in the error all that was sent."""
    quoted = {"message": f"{IN_REPLY} {body} {KEY}", "type": "x", "code": "x"}
    return Fault(400, json.dumps({"error": quoted}).encode())


def holding(home: Path, word: str) -> Iterator[str]:
    """Files under *home* with *word* in their bytes or their name, the PDF aside."""
    for path in sorted(home.rglob("*")):
        place = path.relative_to(home).as_posix()
        if place == "a.pdf" or not path.is_file():
            continue
        if word in place or word.encode() in path.read_bytes():
            yield place


def is_content(place: str) -> bool:
    """The artifact holds the document's words, and the journal what was asked."""
    artifact = place.startswith("data/store/blobs/") or place.endswith("artifact.json")
    return artifact or place.startswith("data/journal/")


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (talkative, 0),
        pytest.param(stubborn, 0, marks=pytest.mark.slow),
        (quoting, 3),
    ],
)
def test_no_word_gets_where_it_does_not_belong(
    home: Path, script: Any, status: int
) -> None:
    """Not into streams, logs, ledger, traces, run records or leftovers."""
    # No file of this name is read: its key would be sent.
    (home / ".env").write_text("OPENAI_API_KEY=of-a-file\n", encoding="ascii")
    with receiving() as receiver, serving() as server:
        server.script = script
        done = run(
            "ingest", "a.pdf", "--json", "--model", "openai/gpt-4o-mini", "--api-base",
            server.base, "--mode", "standard", home=home, OPENAI_API_KEY=KEY,
            LANGFUSE_PUBLIC_KEY="pk", LANGFUSE_SECRET_KEY=TRACING_KEY,
            LANGFUSE_BASE_URL=receiver.url, TMPDIR=str(home / "tmp"),
            VECTORLESS_RAG_LOG_LEVEL="debug",
        )  # fmt: skip
        sent = json.dumps([body["messages"] for body in server.requests])
        traced = receiver.raw
    told = (done.out + done.err).encode() + traced
    written = {word: list(holding(home, word)) for word in (*CONTENT, *SECRETS)}

    assert status == done.status, done.err
    # They were there to be told.
    assert [True, True] == [IN_DOCUMENT in sent, IN_PROMPT in sent]
    assert f"Bearer {KEY}" in server.headers[0].values()
    assert traced
    assert [] == [word for word in written if word.encode() in told]
    assert [] == [w for word in CONTENT for w in written[word] if not is_content(w)]
    assert [[], []] == [written[word] for word in SECRETS]
    # The look does see what is there.
    assert any(place.startswith("data/journal/") for place in written[IN_REPLY]) == (
        status == 0
    )
    assert [] == list((home / "tmp").iterdir())
