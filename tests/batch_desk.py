"""
The files and batches of the provider on this machine, as OpenAI's protocol has them.

Each line of a batch is answered by the server's script, as a request of its own would
be: a reply of status 200 goes to the output file, any other to the error file.
"""

import itertools
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fault_server import Fault, error

_PART = re.compile(
    rb'name="(\w+)"[^\r]*\r\n(?:[\w-]+:[^\r]*\r\n)*\r\n(.*)\Z', re.DOTALL
)

Lines = list[bytes]

GONE = error(404, code="not_found", message="no such thing")


@dataclass
class Desk:
    """What was handed in, and what becomes of it."""

    ends: list[str] = field(default_factory=list)
    """Status that each batch ends with, in turn; ``completed`` from then on."""

    held: threading.Event | None = None
    """Batches are in progress until it is set; None: they end at once."""

    faults: dict[str, list[Fault | None]] = field(default_factory=dict)
    """
    By method and kind, such as ``POST batches``: what happens instead, in turn; None:
    what is asked for.
    """

    lost: bool = False
    """Whether a fault of ``POST batches`` loses the answer alone: the batch is made."""

    others: int = 0
    """Batches of others of the account that follow each of ours."""

    done_of_cut: int = 1
    """Lines that an expired or cancelled batch has carried out."""

    spoil: Callable[[Lines], Lines] = lambda lines: lines
    """What becomes of the lines of every output file."""

    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Every request for files and batches: method and kind."""

    headers: list[dict[str, str]] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)
    _lines: dict[str, Callable[[], None]] = field(default_factory=dict)

    def lines_of(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the requests of a batch."""
        data = self.files[batch["input_file_id"]]
        return [json.loads(line) for line in data.splitlines()]

    def act(
        self,
        method: str,
        path: str,
        raw: bytes,
        answer: Callable[[dict[str, Any]], Fault],
    ) -> Fault:
        """Carry out one request; *answer* is how the model answers a line."""
        kind, _, rest = path.partition("?")[0].removeprefix("/v1/").partition("/")
        name, _, what = rest.partition("/")
        place = " ".join(filter(None, (method, kind, what or ("one" if name else ""))))
        self.asked.append(place)
        planned = self.faults.get(place, [])
        fault = planned.pop(0) if planned else None
        if fault is not None:
            if place == "POST batches" and self.lost:
                self._create(json.loads(raw))
            return fault
        if place == "POST files":
            return self._upload(raw)
        if place == "POST batches":
            return _told(self._create(json.loads(raw)))
        if place == "GET batches":
            return _told(self._page(path))
        return self._of_one(place, name, answer)

    def _page(self, path: str) -> dict[str, Any]:
        """List the latest first, one a page."""
        listed = [*reversed(self.batches.values())]
        after = re.search(r"after=(\w+)", path)
        names = [batch["id"] for batch in listed]
        start = names.index(after[1]) + 1 if after else 0
        page = listed[start : start + 1]
        more = len(listed) > start + 1
        return {"object": "list", "data": page, "has_more": more}

    def _of_one(
        self, place: str, name: str, answer: Callable[[dict[str, Any]], Fault]
    ) -> Fault:
        batch, file = self.batches.get(name), self.files.get(name)
        if place == "GET batches one" and batch:
            return _told(self._look(batch, answer))
        if place == "POST batches cancel" and batch:
            self.cancelled.append(name)
            batch["status"] = "cancelling"
            return _told(batch)
        if place == "GET files content" and file:
            return Fault(body=file)
        return GONE

    def _upload(self, raw: bytes) -> Fault:
        boundary = raw.partition(b"\r\n")[0]
        parts: dict[bytes, bytes] = {
            found[1]: found[2]
            for part in raw.split(boundary)
            if (found := _PART.search(part.removesuffix(b"\r\n")))
        }
        assert b"batch" == parts[b"purpose"]
        return _told(self._file(parts[b"file"]))

    def _file(self, data: bytes) -> dict[str, Any]:
        name = f"file-{next(self._numbers)}"
        self.files[name] = data
        return {
            "id": name, "object": "file", "bytes": len(data), "created_at": 1,
            "filename": "x.jsonl", "purpose": "batch", "status": "processed",
        }  # fmt: skip

    def _create(self, wanted: dict[str, Any]) -> dict[str, Any]:
        assert ("24h", "/v1/chat/completions") == (
            wanted["completion_window"], wanted["endpoint"],
        )  # fmt: skip
        name = f"batch_{next(self._numbers)}"
        self.batches[name] = {
            "id": name, "object": "batch", "status": "validating",
            "created_at": int(time.time()), **wanted,
        }  # fmt: skip
        for _ in range(self.others):
            other = {**self.batches[name], "id": f"other_{next(self._numbers)}"}
            del other["metadata"]
            self.batches[other["id"]] = other
        return self.batches[name]

    def _look(
        self, batch: dict[str, Any], answer: Callable[[dict[str, Any]], Fault]
    ) -> dict[str, Any]:
        if batch["status"] == "validating":
            batch["status"] = "in_progress"
        elif batch["status"] == "cancelling":
            self._end(batch, "cancelled", answer)
        elif batch["status"] == "in_progress" and (
            self.held is None or self.held.is_set()
        ):
            self._end(batch, self.ends.pop(0) if self.ends else "completed", answer)
        return batch

    def _end(
        self,
        batch: dict[str, Any],
        status: str,
        answer: Callable[[dict[str, Any]], Fault],
    ) -> None:
        batch["status"] = status
        if status.startswith("failed"):
            batch["status"], _, code = status.partition(":")
            batch["errors"] = {"object": "list", "data": [{"code": code, "line": 1}]}
            return
        good: Lines = []
        bad: Lines = []
        lines = self.lines_of(batch)
        for number, line in enumerate(lines):
            cut = status != "completed" and number >= self.done_of_cut
            outcome: dict[str, Any] = {
                "id": f"line-{number}", "custom_id": line["custom_id"],
                "response": None, "error": None,
            }  # fmt: skip
            if cut:
                outcome["error"] = {"code": f"batch_{status}", "message": "too late"}
                bad.append(json.dumps(outcome).encode())
                continue
            fault = answer(line["body"])
            outcome["response"] = {
                "status_code": fault.status, "request_id": "r",
                "body": json.loads(fault.body),
            }  # fmt: skip
            (good if fault.status == 200 else bad).append(json.dumps(outcome).encode())
        if good:
            data = b"\n".join(self.spoil(good)) + b"\n"
            batch["output_file_id"] = self._file(data)["id"]
        if bad:
            batch["error_file_id"] = self._file(b"\n".join(bad) + b"\n")["id"]


def _told(value: dict[str, Any]) -> Fault:
    return Fault(body=json.dumps(value).encode())
