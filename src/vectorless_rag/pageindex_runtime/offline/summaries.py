"""Summaries made of sentences of the text itself."""

import re
from collections import Counter
from collections.abc import Sequence

from vectorless_rag.pageindex_runtime.offline import vocabulary
from vectorless_rag.pageindex_runtime.offline.sentences import Sentence, sentences_of
from vectorless_rag.pageindex_runtime.offline.text import (
    count_words,
    cut_words,
    has_letter,
    is_dense,
    is_plain,
)

MAX_WORDS = 70
"""Longest summary; longer ones read as excerpts."""

_GOOD_WORDS = (9, 40)
_MAX_SENTENCES = 2000
_SCRAPS = 30
_GLUED = 25
_MAX_PICKS = 5
_MIN_TERM = 4
_LEAD = 0.8
_OPENS = 0.15
_SMOOTH = 3
_AGAIN = 0.1
_TOKEN = re.compile(r"\w+")
_YEAR = re.compile(r"\(\d{4}[a-z]?\)")


def summarise(text: str, most: int = MAX_WORDS) -> str:
    """
    Pick the sentences of *text* that say most of it, in the order of the text.

    Args:
        text: Page texts.
        most: Longest summary in words; never more than `MAX_WORDS`.

    Returns:
        Sentences of the text joined by blanks, each verbatim but for white space.
        Where the text has no whole sentence, its first words. Empty only if the text
        has no letter.
    """
    budget = max(1, min(most, MAX_WORDS))
    found = sentences_of(text)
    whole = [s for s in found if s.whole][:_MAX_SENTENCES]
    picked = _pick(whole, budget)
    if picked:
        return " ".join(whole[n].text for n in picked)
    if whole:
        return cut_words(whole[0].text, budget)
    scraps = [s.text for s in found if not _is_address(s.text)]
    return cut_words(" ".join(scraps), min(budget, _SCRAPS)) or first_words(
        text, budget
    )


def _is_address(text: str) -> bool:
    return "http" in text or "@" in text


def best(found: Sequence[Sentence]) -> str:
    """Return the one sentence that says most of what all of them say, or nothing."""
    picked = _pick(found, MAX_WORDS, picks=1)
    return found[picked[0]].text if picked else ""


def first_words(text: str, most: int) -> str:
    """Return the longest run of words without control characters, cut to *most*."""
    runs: list[list[str]] = [[]]
    for word in text.split():
        if is_plain(word):
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=lambda run: (any(map(has_letter, run)), len(run)))
    return cut_words(" ".join(longest), most) or _letters(text)


def _letters(text: str) -> str:
    """Return the first run of letters: the last resort."""
    match = re.search(r"[^\W\d_]+", text)
    return match.group()[:MAX_WORDS] if match else ""


def join(groups: Sequence[Sequence[Sentence]], most: int = MAX_WORDS) -> list[str]:
    """
    Take sentences from each group in turn until *most* words are used.

    Every group gives its first sentence before one gives its second; shorter ones
    are taken where not all fit. Returns them in the order of the groups.
    """
    budget = max(1, min(most, MAX_WORDS))
    taken: list[tuple[int, int]] = []
    seen: set[str] = set()
    for rank in range(max((len(g) for g in groups), default=0)):
        row = [(n, g[rank].text) for n, g in enumerate(groups) if rank < len(g)]
        for n, text in _affordable(row, budget, len(taken)):
            if text in seen:
                continue
            cost = count_words(text)
            if cost <= budget:
                budget -= cost
                seen.add(text)
                taken.append((n, rank))
    return [groups[n][rank].text for n, rank in sorted(taken)]


def _affordable(
    row: list[tuple[int, str]], budget: int, taken: int
) -> list[tuple[int, str]]:
    total = sum(count_words(text) for _, text in row)
    if total <= budget:
        return row
    # The first group leads; the others go by length, so that most are heard.
    lead = row[:1] if not taken else []
    rest = row[len(lead) :]
    return [*lead, *sorted(rest, key=lambda pair: count_words(pair[1]))]


def _pick(found: Sequence[Sentence], budget: int, picks: int = _MAX_PICKS) -> list[int]:
    terms = [_terms(s.text) for s in found]
    weight = Counter(t for ts in terms for t in ts)
    # What is said word for word again and again is a header, not content.
    again = Counter(s.text for s in found)
    total = sum(weight.values()) or 1
    share = {t: n / total for t, n in weight.items()}
    top = max(share.values(), default=1.0)
    picked: list[int] = []
    while len(picked) < picks:
        best, best_score = -1, 0.0
        for n, sentence in enumerate(found):
            known = any(found[p].text == sentence.text for p in picked)
            if known or count_words(sentence.text) > budget:
                continue
            score = _score(sentence, n, terms[n], share, top) / again[sentence.text]
            if score > best_score:
                best, best_score = n, score
        if best < 0:
            break
        picked.append(best)
        budget -= count_words(found[best].text)
        # What is said already is worth less a second time.
        share |= {t: share[t] * _AGAIN for t in terms[best]}
    return sorted(picked)


def _terms(text: str) -> list[str]:
    terms: set[str] = set()
    for word in _TOKEN.findall(text.casefold()):
        if is_dense(word[0]):
            terms.update(word[n : n + 2] for n in range(len(word) - 1))
        elif len(word) >= _MIN_TERM and word not in vocabulary.COMMON_WORDS:
            terms.add(word)
    return sorted(terms)


def _score(
    sentence: Sentence, n: int, terms: list[str], share: dict[str, float], top: float
) -> float:
    if not terms:
        return 0.0
    said = sum(share[t] for t in terms) / ((len(terms) + _SMOOTH) * top)
    lead = _LEAD / (1 + n)
    return (said + lead + _OPENS * sentence.opens_block) * _fitness(sentence.text)


def _fitness(text: str) -> float:
    """Rate how well a sentence stands alone, from 0 to 1."""
    low, high = _GOOD_WORDS
    words = count_words(text)
    rate = 1.0
    rate *= 1.0 if words >= low else words / low
    rate *= 1.0 if words <= high else high / words
    first = text.split(maxsplit=1)[0].strip(",").casefold()
    rate *= 0.6 if first in vocabulary.LEANING_WORDS else 1.0
    rate *= 0.5 if "- " in text else 1.0  # a word broken at the end of a line
    rate *= 0.5 if _is_address(text) else 1.0
    glued = any(len(t) > _GLUED and not is_dense(t[0]) for t in text.split())
    rate *= 0.5 if glued else 1.0
    rate *= 0.3 if text.count("(") != text.count(")") else 1.0
    rate *= 0.6 if _YEAR.search(text) else 1.0
    digits = sum(1 for c in text if c.isdecimal())
    rate *= 0.6 if digits * 10 > len(text) else 1.0
    names = [t for t in text.split() if t[:1].isupper()]
    return rate * (0.4 if len(names) * 2 > text.count(" ") + 1 else 1.0)
