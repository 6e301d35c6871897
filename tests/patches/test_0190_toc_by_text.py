"""What the lines of a table of contents show is not asked."""

from patches.good_model import GOOD, options, pages_of, printed
from patches.scripted import MODEL, provider
from patches.tree_under_test import classic
from vectorless_rag.pageindex_runtime.plans import DECIDED

TITLES = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta"]
LEADERS = [f"{n} {title} . . . . . . {7 * n}" for n, title in enumerate(TITLES, 1)]
PROSE = "The quick brown fox jumps over the lazy dog, again and again. " * 8


def test_printed_page_numbers_are_seen_without_a_call() -> None:
    """Leaders, or a table of bare lines, whose numbers go up."""
    found = []
    with provider(decides=DECIDED, **GOOD) as script:
        for toc in ("\n".join(LEADERS), "\n".join(LEADERS).replace(" . . . . . .", "")):
            pages = pages_of([toc, PROSE])
            told = classic.toc_extractor(pages, [0], MODEL)
            found.append(told["page_index_given_in_toc"])

    assert (["yes", "yes"], []) == (found, script.questions)


def test_a_table_found_by_its_lines_costs_one_question() -> None:
    """Nobody is asked where it stands, whether it has numbers, or if all is there."""
    entries = [(str(n), t, str(7 * n)) for n, t in enumerate(TITLES, 1)]
    pages = pages_of([PROSE, "\n".join(LEADERS), PROSE, PROSE])

    answers = GOOD | {"toc_transformer": printed(*entries)}
    with provider(decides=DECIDED, **answers) as script:
        toc = classic.check_toc(pages, options())
        read = classic.toc_transformer(toc["toc_content"], MODEL)

    assert ([1], TITLES, ["toc_transformer"]) == (
        toc["toc_page_list"],
        [entry["title"] for entry in read],
        script.questions,
    )
