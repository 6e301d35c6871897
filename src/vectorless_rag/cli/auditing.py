"""``vectorless-rag audit``: is it unaltered, is it current, what made it?"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vectorless_rag import upstream
from vectorless_rag.audit import (
    Finding,
    Staleness,
    Verdict,
    cyclonedx,
    exit_status,
    in_order,
    sound_artifacts,
    staleness,
    verify_artifact,
    verify_bills,
    verify_built,
    verify_ledger,
    verify_store,
)
from vectorless_rag.cli.accounting import ledger_if_there, require_folder
from vectorless_rag.cli.artifacts import find
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.options import Format
from vectorless_rag.cli.printing import console, labelled, marked
from vectorless_rag.cli.words import counted
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.running import running_code
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable, storable
from vectorless_rag.store import Stored, StoreReader, open_reader
from vectorless_rag.units import usd
from vectorless_rag.upstream.mailbox import Patch
from vectorless_rag.upstream.series import read_series

_STATES = {
    Verdict.MISMATCH: "fail",
    Verdict.UNDECIDED: "undecided",
    Verdict.NOTE: "note",
}


def verify(
    names: Sequence[str],
    settings: Settings,
    *,
    read_data: bool,
    sample: int | None,
    as_json: bool,
) -> int:
    """
    Check artifacts, or the whole store; return 0, 20 or 21.

    Args:
        names: Artifacts; none: everything.
        settings: Where the store and the ledger are.
        read_data: Read contents too, not only records.
        sample: Read the contents of so many artifacts, of the whole store.
        as_json: Print one object for each store.
    """
    if sample is not None and (names or not read_data):
        raise VectorlessRagError(
            Code.SETTINGS_INVALID, "--sample goes with the data of a whole store"
        )
    status = 0
    for store, artifacts in _asked_for(names, settings):
        found, looked_at = _look(store, artifacts, read_data=read_data, sample=sample)
        scope = _Scope(whole=artifacts is None, read_data=read_data)
        found = in_order(found + _bills(store, looked_at, settings, scope))
        if as_json:
            _print_findings(store, looked_at, found, read_data=read_data, sample=sample)
        else:
            _show_findings(looked_at, found, read_data=read_data, sample=sample)
        # 20 is graver than 21.
        status = min({status, exit_status(found)} - {0}, default=0)
    return status


def _asked_for(
    names: Sequence[str], settings: Settings
) -> Iterator[tuple[StoreReader, list[Stored] | None]]:
    if not names:
        if settings.store_url is None and not settings.store_dir.is_dir():
            raise VectorlessRagError(
                Code.STORE_UNWRITABLE, f"no store in {settings.data_dir}"
            )
        yield open_reader(settings), None
        return
    by_root: dict[str, tuple[StoreReader, list[Stored]]] = {}
    for name in names:
        store, stored = find(name, settings)
        by_root.setdefault(str(store.root), (store, []))[1].append(stored)
    yield from by_root.values()


def _look(
    store: StoreReader,
    artifacts: list[Stored] | None,
    *,
    read_data: bool,
    sample: int | None,
) -> tuple[list[Finding], list[Stored]]:
    if artifacts is None:
        found = verify_store(store, read_data=read_data, sample=sample)
        return found, sound_artifacts(store)
    found = [
        finding
        for stored in artifacts
        for finding in verify_artifact(store, stored, read_data=read_data)
    ]
    return found, artifacts


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """What a check was asked to look at."""

    whole: bool
    read_data: bool


def _bills(
    store: StoreReader, artifacts: list[Stored], settings: Settings, scope: _Scope
) -> list[Finding]:
    """Compare with the ledger; where that cannot be done, it is not decided."""
    try:
        with ledger_if_there(settings) as ledger:
            if ledger is not None:
                found = verify_ledger(ledger)
                if scope.read_data:
                    found += verify_bills(store, ledger, artifacts)
                if scope.whole:
                    own = settings.owns_ledger
                    found += verify_built(ledger, artifacts, own=own)
                return found
            why = "there is none" if artifacts else ""
    except VectorlessRagError as error:
        if error.code is not Code.LEDGER_UNAVAILABLE:
            raise
        why = error.detail or "not to be opened"
    undecided = Finding(verdict=Verdict.UNDECIDED, file="ledger", what=why)
    return [undecided] if why else []


def _print_findings(
    store: StoreReader,
    artifacts: list[Stored],
    found: list[Finding],
    *,
    read_data: bool,
    sample: int | None,
) -> None:
    verdict = {0: "sound", 20: "mismatch", 21: "undecided"}[exit_status(found)]
    print_json(
        {
            "store": storable(str(store.root)),
            "artifacts": len(artifacts),
            "read_data": read_data,
            "sample": sample,
            "verdict": verdict,
            "findings": [
                {**finding.to_json(), "file": storable(finding.file)}
                for finding in found
            ],
        }
    )


def _show_findings(
    artifacts: list[Stored],
    found: list[Finding],
    *,
    read_data: bool,
    sample: int | None,
) -> None:
    out = console()
    for finding in found:
        words = f"{printable(finding.file)}: {printable(finding.what)}"
        out.print(marked(_STATES[finding.verdict], words), soft_wrap=True)
    looked = f"{len(artifacts)} artifact{'' if len(artifacts) == 1 else 's'}"
    if not read_data:
        looked += ", records only"
    elif sample is not None:
        looked += f", the content of {min(sample, len(artifacts))} of them"
    said = {
        0: ("ok", f"{looked}: every byte looked at is the one that was written"),
        20: ("fail", f"{looked}: something was altered"),
        21: ("undecided", f"{looked}: not everything could be looked at"),
    }
    out.print(marked(*said[exit_status(found)]), soft_wrap=True)


def stale(settings: Settings, *, as_json: bool) -> int:
    """Print the current artifacts that would not be made so today; return 0."""
    if settings.store_url is None:
        require_folder(settings)
    code = running_code(settings)
    patches = {patch.file: patch.sha256 for patch in code.record.patches}
    store = open_reader(settings)
    with ledger_if_there(settings) as ledger:
        found = staleness(store, code.configuration, patches, ledger)
    if as_json:
        print_json(found.to_json())
    else:
        _show_stale(found)
    return 0


def _show_stale(found: Staleness) -> None:
    out = console()
    number = sum(len(group.artifacts) for group in found.groups)
    out.print(f"{number} of {found.current} current artifacts are stale")
    for group in found.groups:
        out.print()
        for index, difference in enumerate(group.differences):
            label = "" if index else "because"
            out.print(labelled(label, printable(difference.words)), soft_wrap=True)
        price = found.average.price(group.pages)
        cost = "price unknown" if price is None else f"${usd(price):f}"
        basis = printable(found.average.words)
        words = f"{cost} for {counted(group.pages, 'page')}, based on {basis}"
        if price is None:
            words = f"{cost} for {counted(group.pages, 'page')}: {basis}"
        out.print(labelled("rebuild", words), soft_wrap=True)
        for artifact in group.artifacts:
            words = (
                f"{artifact.stored.recipe_hash[:12]}  {counted(artifact.pages, 'page')}"
            )
            name = printable(artifact.name)
            out.print(labelled("artifact", f"{words}  {name}"), soft_wrap=True)


def provenance(name: str, settings: Settings, *, spelled: Format) -> int:
    """Print what made an artifact, as a document that other tools read."""
    _, stored = find(name, settings)
    if spelled is Format.IN_TOTO:
        # As it is stored: its digest is the one that activations name.
        sys.stdout.write(stored.manifest.encoded.decode() + "\n")
    else:
        print_json(cyclonedx(stored.manifest, _known_patches()))
    return 0


def _known_patches() -> tuple[Patch, ...]:
    try:
        return read_series(upstream.resources_root()).patches
    except VectorlessRagError:
        # Their headers say what they resolve; the bill is whole without.
        return ()
