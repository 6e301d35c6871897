"""
A provider on this machine that reads about as well as a real one, and as slowly.

It answers what the offline model answers, and then errs: it misses entries, changes
its mind, writes summaries of other lengths, thinks aloud, refuses with 429 and 500,
and now and then replies what is no JSON. Usage is counted by the model's tokenizer.
What it does depends on the seed and the question, not on the order of requests.
It keeps the starts of prompts, and says how much of each it had.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from prefix_cache import PrefixCache
from vectorless_rag.pageindex_runtime.offline.provider import answer
from vectorless_rag.pageindex_runtime.providers import Message
from vectorless_rag.pageindex_runtime.tokens import count_tokens

# The instructions of each question; document text is taken out before they are
# looked for. In this order: a later phrase may stand in an earlier question too.
PHRASES = {
    "toc_detector_single_page": "detect if there is a table of content provided",
    "detect_page_index": "detect if there are page numbers/indices",
    "check_if_toc_transformation_is_complete": "Raw Table of contents",
    "toc_transformer": "Turn the table of contents below into JSON",
    "toc_index_extractor": "add the physical_index to the table of contents",
    "add_page_number_to_toc": "title that is described in the structure is started",
    "generate_toc_continue": "continue the tree structure from the previous part",
    "generate_toc_init": "generate the tree structure of the document",
    "check_title_appearance_in_start": "starts in the beginning of the given page_text",
    "check_title_appearance": "appears or starts in the given page_text",
    "single_toc_item_index_fixer": "find the physical index of the start page",
    "summary_subtree": "Summarise the section of a document described below",
    "summary_leaf": "Summarise the ",
    "expand": "Find the headings of the subsections",
}
_FRAMED = re.compile(r"<user_document>.*?</user_document>", re.DOTALL)
_VERDICTS = ("toc_detected", "answer", "start_begin", "completed")
_LONGER = "It goes on to say how this bears on the sections before and after it. "


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How the provider errs, and how slow it is."""

    misses: float = 0.1
    """Share of the entries of a list that it leaves out."""

    doubts: float = 0.05
    """Share of yes and no that it turns round."""

    slips: float = 0.02
    """Share of replies that are no JSON."""

    failures: float = 0.02
    """Share of requests that it answers with 429 or 500."""

    latency_s: float = 0.0
    """Median of the time a reply takes; the times are spread as real ones are."""


FAULTLESS = Manner(misses=0, doubts=0, slips=0, failures=0)
"""Answers as the offline model does, at once."""


@dataclass
class Simulated:
    """A running server."""

    base: str
    """What to give as ``api_base``."""

    manner: Manner
    seed: str
    cache: PrefixCache
    requests: int = 0
    _seen: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, body: dict[str, Any]) -> tuple[int, bytes, float]:
        """Return status, body and seconds to wait."""
        messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
        key = sha256(json.dumps(body["messages"]).encode()).hexdigest()
        with self._lock:
            self.requests += 1
            # Asked again, it may answer otherwise.
            again = self._seen[key] = self._seen.get(key, 0) + 1
        rng = Random(f"{self.seed}:{key}:{again}")  # noqa: S311  (to be repeated)
        wait = self.manner.latency_s * rng.lognormvariate(0.0, 0.5)
        if rng.random() < self.manner.failures:
            status = rng.choice((429, 429, 500))
            return status, b'{"error": {"message": "later", "type": "x"}}', wait / 10
        operation = question_of(messages)
        first = messages[0]
        told = (first, *messages[1:]) if operation == "toc_transformer" else (first,)
        text = self._spoiled(rng, answer(operation, told), first.content)
        held = self.cache.held(body["messages"])
        return 200, _completion(body, messages, text, held), wait

    def _spoiled(self, rng: Random, text: str, prompt: str) -> str:
        if rng.random() < self.manner.slips:
            return "I am sorry. " + text
        try:
            value = json.loads(text)
        except ValueError:
            return text
        rows = value if isinstance(value, list) else _rows(value)
        rows[:] = [row for row in rows if rng.random() >= self.manner.misses]
        if isinstance(value, dict):
            self._doubt(rng, value)
            if "summary" in value:
                value["summary"] = _of_other_length(rng, value["summary"])
            if '"thinking"' in prompt:
                words = " ".join(["thought"] * rng.randint(15, 70))
                value = {"thinking": words, **value}
        return json.dumps(value, ensure_ascii=False)

    def _doubt(self, rng: Random, value: dict[str, Any]) -> None:
        for key in _VERDICTS:
            if value.get(key) in {"yes", "no"} and rng.random() < self.manner.doubts:
                value[key] = {"yes": "no", "no": "yes"}[value[key]]


def question_of(messages: tuple[Message, ...]) -> str:
    """Tell what is asked, by the instructions of the first turn."""
    plain = _FRAMED.sub("", messages[0].content)
    for name, phrase in PHRASES.items():
        if phrase in plain:
            return name
    raise AssertionError("no question of ours: " + plain[:80])


def _rows(value: Any) -> list[Any]:
    lists = [v for v in value.values() if isinstance(v, list)] if value else []
    return lists[0] if lists else []


def _of_other_length(rng: Random, text: str) -> str:
    length = rng.uniform(0.5, 1.4)
    words = text.split()
    if length < 1:
        return " ".join(words[: max(int(len(words) * length), 5)])
    return text + " " + _LONGER * round((length - 1) * len(words) / 14)


def _completion(
    body: dict[str, Any], messages: tuple[Message, ...], text: str, held: int
) -> bytes:
    model = f"openai/{body['model']}"
    most = body.get("max_tokens") or body.get("max_completion_tokens") or 4096
    finish = "stop"
    if count_tokens(text, model) > most:
        text, finish = text[: most * 3], "length"
    prompt = sum(count_tokens(m.content, model) + 4 for m in messages)
    output = count_tokens(text, model)
    return json.dumps(
        {
            "id": "chatcmpl-" + sha256(text.encode()).hexdigest()[:12],
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": finish,
                }
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": output,
                "total_tokens": prompt + output,
                "prompt_tokens_details": {"cached_tokens": min(held, prompt)},
            },
        }
    ).encode()


@contextmanager
def simulating(
    manner: Manner, seed: str = "1", cache: PrefixCache | None = None
) -> Iterator[Simulated]:
    """Run a server for the length of a block; *cache*: what it keeps, and how."""
    server = _Server(("127.0.0.1", 0), _Handler)
    base = f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.simulated = Simulated(
        base=base, manner=manner, seed=seed, cache=cache or PrefixCache()
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.simulated
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    simulated: Simulated


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server  # type: ignore[mutable-override]

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        """Answer a chat completion."""
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked, simulated = json.loads(raw), self.server.simulated
        status, body, wait = simulated.reply(asked)
        time.sleep(wait)
        if status == HTTPStatus.OK:
            simulated.cache.keep(asked["messages"])
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
