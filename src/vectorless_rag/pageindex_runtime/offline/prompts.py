"""
The data inside a prompt.

Document text may hold anything, also what looks like the prompt around it. So parts
are found from the outside: a label stands at the start of a line; it is the first of
its kind behind the part before it, or the last where the part before it is a text;
and the frame around a part closes at the last closing tag before the next label.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vectorless_rag.pageindex_runtime.text_first import text_in_place

OPEN = "<user_document>"
CLOSE = "</user_document>"

_NOTICE = re.compile(r"\s{0,8}<!--[^\n]{0,300}-->[ \t]{0,8}\n?")
_ESCAPED = re.compile(r"&lt;(?=\s{0,8}/?\s{0,8}user_document\b)", re.IGNORECASE)
_WORDS_ASKED = re.compile(r"(\d{1,6}) words")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of data in a prompt."""

    name: str
    label: str
    """Words at the start of a line that stand before it."""

    end: str = ""
    """Words that follow it where it has no frame; the last such words count."""

    tame: bool = False
    """It is one line or spelled as JSON: no line of it starts with a label."""


_ASKED = Part("title", "The given section title is", tame=True)
_SHOWN = Part("text", "The given page_text is:", "eply format:")

PARTS: Mapping[str, tuple[Part, ...]] = {
    "toc_detector_single_page": (
        Part("text", "Given text:", "return the following JSON"),
    ),
    "extract_toc_content": (Part("text", "Given text:", "Directly return the full"),),
    "detect_page_index": (Part("text", "Given text:", "Reply format:"),),
    "toc_transformer": (Part("text", "Given table of contents"),),
    "check_if_toc_transformation_is_complete": (
        Part("text", "Raw Table of contents:"),
        Part("toc", "Cleaned Table of contents:", tame=True),
    ),
    "check_if_toc_extraction_is_complete": (
        Part("text", "Document:"),
        Part("toc", "Table of contents:", tame=True),
    ),
    "toc_index_extractor": (
        Part("toc", "Table of contents:", tame=True),
        Part("pages", "Document pages:"),
    ),
    "add_page_number_to_toc": (
        Part("pages", "Current Partial Document:"),
        Part("toc", "Given Structure", tame=True),
    ),
    "generate_toc_init": (Part("pages", "Given text"),),
    "generate_toc_continue": (
        Part("pages", "Given text"),
        Part("toc", "Previous tree structure", tame=True),
    ),
    "check_title_appearance": (_ASKED, _SHOWN),
    "check_title_appearance_in_start": (_ASKED, _SHOWN),
    "single_toc_item_index_fixer": (
        Part("title", "Section Title:", tame=True),
        Part("pages", "Document pages:"),
    ),
    "expand": (
        Part("title", "Section title:", tame=True),
        Part("pages", "Pages:", "List the subsection headings"),
    ),
    "summary_leaf": (Part("text", "Given Text:", "Reply strictly in the following"),),
    "summary_direct": (Part("text", "Given Text:", "Reply strictly in the following"),),
    "generate_node_summary": (
        Part("text", "Partial Document Text:", "Directly return the description"),
    ),
    "summary_subtree": (
        Part("title", "Section Title:", tame=True),
        Part("opening", "Opening Text:"),
        Part(
            "children",
            "Subsection Titles and Summaries:",
            "Reply strictly in the following",
            tame=True,
        ),
    ),
    "generate_doc_description": (
        Part(
            "structure",
            "Document Structure:",
            "Directly return the description",
            tame=True,
        ),
    ),
}
"""Where each operation's prompt holds its data, in order: the one table of anchors."""


def parts_of(operation: str, prompt: str) -> dict[str, str]:
    """
    Take the data of *operation* out of *prompt*.

    A prompt with exactly one frame for each part is read by its frames, so that its
    wording does not matter; any other by its labels; one without labels by the
    outermost of its frames; and one without frames as a whole.

    Returns:
        Every part of the operation by name; empty text for a part that is not there.
    """
    wanted, prompt = PARTS[operation], text_in_place(prompt)
    opened, closed = _places(OPEN, prompt), _places(CLOSE, prompt)
    if len(opened) == len(closed) == len(wanted):
        return _by_frames(wanted, prompt, opened, closed)
    spans = _labels(wanted, prompt)
    if any(span is not None for span in spans):
        return _by_labels(wanted, prompt, spans)
    if len(opened) >= len(wanted) and closed:
        return _by_frames(wanted, prompt, opened, closed)
    return {part.name: "" for part in wanted[:-1]} | {wanted[-1].name: prompt}


def instructions(operation: str, prompt: str) -> str:
    """
    Return what stands before the first piece of data; empty if nothing tells.

    Where the prompt opens with a piece of data, what stands behind it.
    """
    prompt = text_in_place(prompt)
    if prompt.startswith(OPEN):
        return prompt[prompt.find(CLOSE) + len(CLOSE) :].partition(OPEN)[0]
    starts = [span[0] for span in _labels(PARTS[operation][:1], prompt) if span]
    starts += [at for at in (prompt.find(OPEN),) if at >= 0]
    return prompt[: min(starts)] if starts else ""


def words_asked(asked: str, default: int) -> int:
    """Read how many words some instructions ask for: the first number they name."""
    match = _WORDS_ASKED.search(asked)
    return int(match[1]) if match else default


def _places(text: str, prompt: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(text), prompt)]


def _labels(wanted: tuple[Part, ...], prompt: str) -> list[tuple[int, int] | None]:
    """Find where each label starts and ends."""
    spans: list[tuple[int, int] | None] = []
    start, tame = 0, True
    for part in wanted:
        pattern = re.compile(rf"^[ \t]*{re.escape(part.label)}", re.MULTILINE)
        found = pattern.finditer(prompt, start)
        match = next(found, None)
        for other in found if not tame else ():
            match = other
        spans.append(match.span() if match else None)
        start = match.end() if match else start
        tame = part.tame
    return spans


def _by_labels(
    wanted: tuple[Part, ...], prompt: str, spans: list[tuple[int, int] | None]
) -> dict[str, str]:
    out: dict[str, str] = {}
    for n, (part, span) in enumerate(zip(wanted, spans, strict=True)):
        behind = [other[0] for other in spans[n + 1 :] if other]
        stop = behind[0] if behind else len(prompt)
        out[part.name] = _content(part, prompt[span[1] : stop]) if span else ""
    return out


def _content(part: Part, region: str) -> str:
    opened = region.find(OPEN)
    # Between a label and its frame stands nothing but a colon and white space.
    if opened >= 0 and not region[:opened].strip(" \t\r\n:"):
        closed = region.rfind(CLOSE)
        start = opened + len(OPEN)
        return _unframed(region[start : closed if closed >= start else None])
    cut = region.rfind(part.end) if part.end else -1
    text = (region if cut < 0 else region[:cut]).removeprefix(":").strip()
    return text.removesuffix(".") if part is _ASKED else text


def _by_frames(
    wanted: tuple[Part, ...], prompt: str, opened: list[int], closed: list[int]
) -> dict[str, str]:
    starts = [at + len(OPEN) for at in opened[: len(wanted)]]
    stops = [
        *(max((at for at in closed if at < s), default=s) for s in starts[1:]),
        closed[-1],
    ]
    return {
        part.name: _unframed(prompt[start : max(start, stop)])
        for part, start, stop in zip(wanted, starts, stops, strict=True)
    }


def _unframed(text: str) -> str:
    notice = _NOTICE.match(text)
    text = text[notice.end() :] if notice else text.removeprefix("\n")
    return _ESCAPED.sub("<", text).removesuffix("\n")
