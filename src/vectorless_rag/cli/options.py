"""Options and arguments that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vectorless_rag import events
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


def load(**options: object) -> Settings:
    """Read the settings with *options* above them, and start reporting events."""
    settings = Settings.load(**options)
    events.configure(settings.log_level.value)
    return settings
