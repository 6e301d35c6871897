"""Options and arguments that several commands share."""

import re
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vectorless_rag import events
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import Mode, Settings


class Format(StrEnum):
    """How provenance is spelled."""

    IN_TOTO = "in-toto"
    CYCLONEDX = "cyclonedx"


DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the artifact store and the ledger."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
WHAT_NAMES = (
    "A PDF, an artifact's folder, or the first 8 digits of an artifact id"
    " or a recipe hash."
)
Named = Annotated[str, typer.Argument(metavar="ARTIFACT_OR_PATH", help=WHAT_NAMES)]
WithMode = Annotated[Mode | None, typer.Option("--mode", help="As if built so.")]
WithModel = Annotated[
    str | None, typer.Option("--model", help="As if built with this model.")
]
WithApiBase = Annotated[
    str | None, typer.Option("--api-base", help="As if asked at this address.")
]


def load(*, quiet_level: str | None = None, **options: object) -> Settings:
    """
    Read the settings with *options* above them, and start reporting events.

    Args:
        quiet_level: Least event reported where no setting says so.
        options: Values that stand above the environment.
    """
    settings = Settings.load(**options)
    level = settings.log_level.value
    if quiet_level is not None and "log_level" not in settings.model_fields_set:
        level = quiet_level
    events.configure(level)
    return settings


def run_name(text: str | None) -> str | None:
    """
    Check the name of a run.

    Raises:
        VectorlessRagError: ``settings_invalid``.
    """
    if text is not None and not re.fullmatch(r"\w[\w.-]{0,99}", text, re.ASCII):
        raise VectorlessRagError(Code.SETTINGS_INVALID, "--run: letters, digits, . _ -")
    return text


def decimal(text: str | None) -> Decimal | str | None:
    """Read an amount; what is none is left to the settings, who name the field."""
    try:
        return Decimal(text) if text is not None else None
    except ArithmeticError:
        return text
