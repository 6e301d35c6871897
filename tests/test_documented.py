"""Commands that documents and help texts show are commands that there are."""

import re
import shlex
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from conftest import REPOSITORY
from documented import DOCUMENTS, LANGUAGES, blocks, commands, spans
from vectorless_rag.cli.app import _app
from vectorless_rag.upstream.__main__ import _parser

PROGRAM = "vectorless-rag"
_OURS = re.compile(rf"(?:^|[|;&(]\s*|\s)({PROGRAM}(?:\s[^|;&>#)]*)?)")
_TARGETS = re.compile(r"^([a-z-]+):", re.MULTILINE)


def shown() -> Iterator[tuple[str, str]]:
    """Every command line of a document, and where it stands."""
    for document in DOCUMENTS:
        for command in commands(document):
            yield str(command), command.text
        for span in spans(document):
            yield f"{document}: {span}", span


SHOWN = dict(shown())
PROGRAM_LINES = {k: v for k, v in SHOWN.items() if PROGRAM in v.split()}
COMPOSE = "docker compose run --rm cli "
COMPOSE_LINES = {k: v for k, v in SHOWN.items() if v.startswith(COMPOSE)}
MAKE_LINES = {k: v for k, v in SHOWN.items() if v.startswith("make ")}
UPSTREAM_LINES = {k: v for k, v in SHOWN.items() if "-m vectorless_rag.upstream" in v}


def parse(line: str) -> None:
    """Let the program read *line* as far as it would before it does anything."""
    group = typer.main.get_command(_app)
    words = shlex.split(line, comments=True)[1:]
    above = None
    while isinstance(group, TyperGroup) and words and not words[0].startswith("-"):
        above = group.make_context(PROGRAM, list(words), parent=above)
        _, command, words = group.resolve_command(above, words)
        assert command is not None
        group = command
    if words and set(words) <= {"--help", "--version", "--install-completion"}:
        return
    if isinstance(group, TyperCommand):
        group.make_context(PROGRAM, words, parent=above)


@pytest.mark.parametrize("place", PROGRAM_LINES)
def test_the_program_takes_what_documents_tell_it(place: str) -> None:
    """Its commands, options and arguments are the ones that there are."""
    found = _OURS.findall(PROGRAM_LINES[place])

    assert found
    for line in found:
        parse(line)


@pytest.mark.parametrize("place", COMPOSE_LINES)
def test_the_image_takes_what_documents_tell_it(place: str) -> None:
    """What follows the service's name is a command of the program."""
    parse(COMPOSE_LINES[place].replace(COMPOSE, f"{PROGRAM} "))


@pytest.mark.parametrize("place", MAKE_LINES)
def test_targets_that_documents_name_exist(place: str) -> None:
    """What is to be made can be made."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    line = re.sub(r"[&|;(].*", "", MAKE_LINES[place])
    words = shlex.split(line, comments=True)[1:]
    named = [word for word in words if "=" not in word]

    assert set(named) <= set(_TARGETS.findall(makefile))


@pytest.mark.parametrize("place", UPSTREAM_LINES)
def test_the_maintainers_verbs_take_what_documents_tell_them(place: str) -> None:
    """They are read by the parser that they have."""
    words = shlex.split(UPSTREAM_LINES[place], comments=True)
    after = words[words.index("vectorless_rag.upstream") + 1 :]

    assert callable(_parser().parse_args(after).run)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_blocks_say_what_they_are(document: str) -> None:
    """A block names its language, and commands stand in blocks of commands."""
    strange = [str(b) for b in blocks(document) if b.language not in LANGUAGES]
    hidden = [
        str(b)
        for b in blocks(document)
        if b.language == "text" and re.search(r"^\$ ", b.body, re.MULTILINE)
    ]

    assert ([], []) == (strange, hidden)


def leaves() -> dict[str, TyperCommand]:
    """Every command by the words that name it."""
    found: dict[str, TyperCommand] = {}

    def walk(group: TyperGroup, before: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if isinstance(command, TyperGroup):
                walk(command, (*before, name))
            elif isinstance(command, TyperCommand):
                found[" ".join((*before, name))] = command

    top = typer.main.get_command(_app)
    assert isinstance(top, TyperGroup)
    walk(top, ())
    return found


LEAVES = leaves()


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_shows_an_example_of_itself(name: str) -> None:
    """Its help ends in a line that can be typed."""
    lines = re.findall(r"^Examples?: +(.+)$", LEAVES[name].help or "", re.MULTILINE)

    assert lines
    for line in lines:
        assert line.startswith(f"{PROGRAM} {name}")
        parse(line)
