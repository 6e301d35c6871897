"""
Prompts that open with the document's text, so that questions about it start alike.

A provider that keeps the start of a prompt charges less for a later one that starts
the same, byte for byte, from some length on: 1,024 tokens at most of them. The
instructions are shorter than that. What is long and comes back is text: a page of
which two titles are checked, then whether they open it, and which is summarised at
the end; a table of contents that is turned into entries, and then compared with them.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from vectorless_rag.pageindex_runtime.framing import CLOSE, OPEN

ABOVE = "(at the top)"
"""Stands where the text stood."""

_BETWEEN = "\n\n"

# Text cannot hold the closing tag: `framed` alters what looks like it.
_FRAME = re.compile(f"{re.escape(OPEN)}.*?{re.escape(CLOSE)}", re.DOTALL)

LEADS: Mapping[str, int] = MappingProxyType(
    {
        "toc_detector_single_page": 0,
        "detect_page_index": 0,
        "toc_transformer": 0,
        "check_if_toc_transformation_is_complete": 0,
        "check_title_appearance": 1,
        "check_title_appearance_in_start": 1,
        "single_toc_item_index_fixer": 1,
        "add_page_number_to_toc": 0,
        "summary_leaf": 0,
        "summary_direct": 0,
        "summary_subtree": 1,
    }
)
"""
Which frame of a question's prompt holds the text that is asked about again.

The questions that are not named show text that no other one starts with: their
instructions stay first, and so does the table of contents that `toc_index_extractor`
shows with every group of pages.
"""


def text_first(operation: str, prompt: str) -> str:
    """
    Put the text that *operation* asks about before everything else.

    Returns:
        The prompt, the framed text moved to its start and `ABOVE` in its place;
        unchanged if there is none, or if it stands there already.
    """
    lead = LEADS.get(operation)
    frames = list(_FRAME.finditer(prompt))
    if lead is None or lead >= len(frames) or not frames[0].start():
        return prompt
    frame = frames[lead]
    before, behind = prompt[: frame.start()], prompt[frame.end() :]
    return f"{frame[0]}{_BETWEEN}{before}{ABOVE}{behind}"


def text_in_place(prompt: str) -> str:
    """Undo `text_first`; any other prompt is returned as it is."""
    frame = _FRAME.match(prompt)
    if frame is None:
        return prompt
    start = frame.end()
    # What stands in another frame is text, whatever it says.
    for other in (*_FRAME.finditer(prompt, start), None):
        at = prompt.find(ABOVE, start, other.start() if other else len(prompt))
        if at >= 0:
            before = prompt[frame.end() : at].removeprefix(_BETWEEN)
            return f"{before}{frame[0]}{prompt[at + len(ABOVE) :]}"
        start = other.end() if other else start
    return prompt
