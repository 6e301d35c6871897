"""What a command line means by its paths."""

import io
import os
from pathlib import Path

import pytest

from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.inputs import expand


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents, and with what is none."""
    for name in (
        "b.pdf",
        "a.PDF",
        "sub/c.pdf",
        "notes.txt",
        ".hidden.pdf",
        ".git/d.pdf",
    ):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "in"


def names(*arguments: str, stdin: bytes = b"") -> list[str]:
    return [str(path) for path in expand(arguments, io.BytesIO(stdin))]


def test_a_file_is_itself_whatever_its_name() -> None:
    """Also one that is not there: that is a failure of the document."""
    assert ["x.pdf", "y"] == names("x.pdf", "y")


@pytest.mark.usefixtures("folder")
def test_a_folder_stands_for_the_documents_below_it() -> None:
    """By name and at any depth; hidden ones and other files are left out."""
    assert ["in/a.PDF", "in/b.pdf", "in/sub/c.pdf"] == names("in")


@pytest.mark.usefixtures("folder")
def test_a_pattern_stands_for_the_files_it_matches() -> None:
    """As in a shell, for callers that have none."""
    assert ["in/b.pdf"] == names("in/*.pdf")
    assert ["in/b.pdf", "in/sub/c.pdf"] == names("in/**/*.pdf")


def test_a_name_with_a_bracket_is_a_name(tmp_path: Path) -> None:
    """Where there is a file of that very name, it is no pattern."""
    (tmp_path / "copy [1].pdf").touch()
    (tmp_path / "@list").touch()

    assert ["copy [1].pdf", "@list"] == names("copy [1].pdf", "@list")


def test_a_list_has_a_path_a_line(tmp_path: Path) -> None:
    """From a file or from standard input; bytes that are no text survive."""
    raw = b"a.pdf\n\n \xff.pdf\r\nb c.pdf"
    (tmp_path / "list").write_bytes(raw)
    expected = ["a.pdf", os.fsdecode(b" \xff.pdf"), "b c.pdf"]

    assert [expected, expected] == [names("@list"), names("-", stdin=raw)]


@pytest.mark.parametrize("data", [b"%PDF-1.7\na", b"a.pdf\0b.pdf\0"])
def test_a_document_is_no_list(tmp_path: Path, data: bytes) -> None:
    """What is no list of lines is not taken for many missing documents."""
    (tmp_path / "list").write_bytes(data)

    with pytest.raises(VectorlessRagError, match="no list of paths"):
        names("@list")


def test_each_document_is_named_once() -> None:
    """However many arguments name it, it keeps its first place."""
    assert ["b.pdf", "a.pdf"] == names("b.pdf", "a.pdf", "b.pdf")


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("*.pdf", "no PDF is there"),
        ("empty", "no PDF is there"),
        ("-", "no PDF is there"),
        ("@missing", "@missing: No such file"),
    ],
)
def test_an_argument_that_names_nothing_is_refused(
    tmp_path: Path, argument: str, why: str
) -> None:
    """A typing error must not look like an empty corpus."""
    (tmp_path / "empty").mkdir()

    with pytest.raises(VectorlessRagError, match=why) as got:
        names(argument)
    assert Code.SETTINGS_INVALID == got.value.code


@pytest.mark.usefixtures("folder")
def test_a_folder_that_cannot_be_looked_into_stands_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may hold documents that nobody would miss; the others are found."""
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)

    assert ["in/a.PDF", "in/b.pdf", "in/sub"] == names("in")
