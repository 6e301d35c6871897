"""Where the money went: by operation, by day, by model, and what is left."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from vectorless_rag.ledger.types import Budget, ReportRow
from vectorless_rag.reporting import plots
from vectorless_rag.reporting.facts import LedgerFacts
from vectorless_rag.reporting.markup import Html, h
from vectorless_rag.reporting.plots import Bar, Spell
from vectorless_rag.reporting.spelling import facts, folded, money, section, table

_MOST_COLUMNS = 62

# Digits of YYYY-MM-DD that name a day, a month, a year.
_GRAINS = ((10, "day"), (7, "month"), (4, "year"))


def spending(ledger: LedgerFacts) -> Html:
    """Draw the part of the page about money."""
    return section("spend", "Spend", *_parts(ledger))


def _parts(ledger: LedgerFacts) -> Iterator[Html]:
    if ledger.failure is not None:
        yield h("p", ledger.failure.message, class_="bad")
        return
    if not ledger.by_operation:
        yield h("p", "No request was ever made.", class_="none")
        return
    guessed = sum(row.guessed_nano for row in ledger.by_operation)
    held = sum(row.open_nano for row in ledger.by_operation)
    yield facts(
        [
            ("Spent in all", money(ledger.cost)),
            ("of it counted at the hold", money(guessed)),
            ("Held by requests in flight", money(held)),
            ("Provider requests", ledger.calls),
            ("Answered from the journal", sum(r.replayed for r in ledger.by_operation)),
        ]
    )
    if not ledger.cost:
        yield h(
            "p",
            "Nothing was charged, so the plots count requests.",
            class_="note",
        )
    paid = bool(ledger.cost)
    spell: Spell = money_tick if paid else str
    bars = [_bar(row, paid=paid) for row in ledger.by_operation]
    bars.sort(key=lambda bar: -bar.value)
    what = "Spend" if paid else "Requests"
    yield _figure(
        f"{what} by operation",
        plots.rows(bars, spell),
        _sums("operation", ledger.by_operation),
        unsure=any(bar.uncertain for bar in bars),
    )
    days, grain = by_time([_bar(row, paid=paid) for row in ledger.by_day])
    yield _figure(
        f"{what} by {grain}, UTC",
        plots.columns(days, spell),
        _sums("day", ledger.by_day),
        unsure=any(bar.uncertain for bar in days),
    )
    yield folded("By model, as a table", _sums("model", ledger.by_model))
    if ledger.budgets:
        yield folded("Budgets", _budgets(ledger.budgets))


def money_tick(nano: int) -> str:
    """Spell an amount with no more decimals than it needs."""
    return money(nano).removesuffix(".00") if nano else "$0"


def by_time(days: Sequence[Bar]) -> tuple[list[Bar], str]:
    """
    Put days in order on an axis without gaps, of months or years if they are many.

    Returns:
        The bars, and what each stands for.
    """
    bars, grain = list(days), "day"
    for digits, grain in _GRAINS:  # noqa: B007  (it is returned)
        names = _every(days[0].label, days[-1].label, digits)
        values: Counter[str] = Counter()
        unsure: Counter[str] = Counter()
        for bar in days:
            values[bar.label[:digits]] += bar.value
            unsure[bar.label[:digits]] += bar.uncertain
        bars = [
            Bar(label=name, value=values[name], uncertain=unsure[name])
            for name in names
        ]
        if len(bars) <= _MOST_COLUMNS:
            break
    return bars, grain


def _every(first: str, last: str, digits: int) -> list[str]:
    """Name every day, month or year from one day to another."""
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    number = (end - day).days + 1
    names = ((day + timedelta(days=n)).isoformat()[:digits] for n in range(number))
    return list(dict.fromkeys(names))


def _bar(row: ReportRow, *, paid: bool) -> Bar:
    if not paid:
        return Bar(label=row.key, value=row.calls)
    return Bar(label=row.key, value=row.cost_nano, uncertain=row.guessed_nano)


def _figure(title: str, plot: Html, values: Html, *, unsure: bool) -> Html:
    legend = h(
        "p",
        h("span", class_="key"),
        "charged by known usage ",
        h("span", class_="key unsure"),
        "counted at its hold: the usage never came back",
        class_="legend",
    )
    return h(
        "figure",
        h("figcaption", title),
        # The table says the same in words.
        h("div", plot, class_="plot", role="img", aria_label=f"{title}, a bar plot"),
        legend if unsure else None,
        folded("The values as a table", values),
    )


def _sums(by: str, rows: Sequence[ReportRow]) -> Html:
    heads = (by, "cost", "in it at hold", "requests", "prompt", "completion")
    lines = [
        (
            row.key,
            money(row.cost_nano),
            money(row.guessed_nano),
            row.calls,
            row.prompt_tokens,
            row.completion_tokens,
        )
        for row in rows
    ]
    caption = f"Requests, tokens and cost by {by}"
    return table(heads, lines, caption=caption, numbers=5)


def _budgets(budgets: Sequence[tuple[str, Budget]]) -> Html:
    lines = [
        (
            name,
            "none" if budget.limit is None else money(budget.limit),
            money(budget.reserved),
            money(budget.spent),
        )
        for name, budget in budgets
    ]
    heads = ("budget", "limit", "held", "spent")
    return table(heads, lines, caption="Budgets", numbers=3)
