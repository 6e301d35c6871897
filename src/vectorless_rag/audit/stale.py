"""Which current artifacts would not be made so today, and what that would cost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vectorless_rag.artifact import Artifact, read_artifact
from vectorless_rag.canon import Json
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.ledger.types import By, ReportRow
from vectorless_rag.prices import OFFLINE_PREFIX
from vectorless_rag.recipe import Configuration, Difference, Recipe, explain
from vectorless_rag.store import Stored, StoreReader
from vectorless_rag.units import NanoUsd, usd


@dataclass(frozen=True, kw_only=True)
class Average:
    """What the pages of one model's runs have cost, by the ledger."""

    model: str
    runs: int
    pages: int
    cost: NanoUsd

    def price(self, pages: int) -> NanoUsd | None:
        """Scale to a number of pages, rounded up; None: there is nothing to go by."""
        if not self.pages:
            return None
        return NanoUsd(-(-self.cost * pages // self.pages))

    @property
    def words(self) -> str:
        """What it is based on, for people."""
        if not self.pages:
            return f"no priced run with {self.model} in the ledger"
        runs = f"{self.runs} run{'s' if self.runs > 1 else ''} with {self.model}"
        return f"{runs} over {self.pages} pages"


@dataclass(frozen=True, kw_only=True)
class StaleArtifact:
    """A current artifact that another recipe would replace."""

    stored: Stored
    name: str
    """Of the document, as first ingested."""

    pages: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Stale artifacts that differ from today's recipe in the same inputs."""

    artifacts: tuple[StaleArtifact, ...]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What changed, the same for each."""
        return self.artifacts[0].differences

    @property
    def pages(self) -> int:
        """Pages to be built again."""
        return sum(artifact.pages for artifact in self.artifacts)


@dataclass(frozen=True, kw_only=True)
class Staleness:
    """All of a store's current artifacts against the recipe of today."""

    configuration: Configuration
    current: int
    """Documents with a current artifact."""

    groups: tuple[Group, ...]
    average: Average

    def to_json(self) -> dict[str, Json]:
        """Spell it; a price that is not known is null."""
        return {
            "configuration_hash": self.configuration.configuration_hash,
            "current": self.current,
            "stale": sum(len(group.artifacts) for group in self.groups),
            "average": {
                "model": self.average.model,
                "runs": self.average.runs,
                "pages": self.average.pages,
                "cost_usd": f"{usd(self.average.cost):f}",
            },
            "groups": [self._spelled(group) for group in self.groups],
        }

    def _spelled(self, group: Group) -> dict[str, Json]:
        price = self.average.price(group.pages)
        return {
            "differences": [d.to_json() for d in group.differences],
            "pages": group.pages,
            "price_usd": None if price is None else f"{usd(price):f}",
            "artifacts": [
                {
                    "artifact_id": artifact.stored.artifact_id,
                    "recipe_hash": artifact.stored.recipe_hash,
                    "document_sha256": artifact.stored.document_sha256,
                    "name": artifact.name,
                    "pages": artifact.pages,
                }
                for artifact in group.artifacts
            ],
        }


def staleness(
    store: StoreReader,
    configuration: Configuration,
    patches: Mapping[str, str],
    ledger: Ledger | None,
) -> Staleness:
    """
    Compare every document's current artifact with what would be made now.

    Args:
        store: Where the artifacts are.
        configuration: What would run now.
        patches: Digest of each patch that would run, by name, in order.
        ledger: What runs have cost; None: there is none.

    Raises:
        VectorlessRagError: ``store_corrupt``: an artifact cannot be read;
            ``ledger_unavailable``.
    """
    current = [s for d in store.chain.documents() if (s := store.current(d))]
    groups: defaultdict[tuple[str, ...], list[StaleArtifact]] = defaultdict(list)
    for stored in current:
        differences = changes(stored, configuration, patches)
        if differences:
            key = tuple(d.words for d in differences)
            groups[key].append(_stale(stored, _read(store, stored), differences))
    return Staleness(
        configuration=configuration,
        current=len(current),
        groups=tuple(Group(artifacts=tuple(found)) for found in groups.values()),
        average=average(store, configuration.model, ledger),
    )


def changes(
    stored: Stored, configuration: Configuration, patches: Mapping[str, str]
) -> tuple[Difference, ...]:
    """List why an artifact would be built again; nothing: it is of today's recipe."""
    document = stored.document_sha256
    now = Recipe(configuration=configuration, document_sha256=document)
    return tuple(
        explain(
            stored.manifest.recipe,
            now,
            patches_before=stored.manifest.patches,
            patches_after=patches,
        )
    )


def average(store: StoreReader, model: str, ledger: Ledger | None) -> Average:
    """
    Sum up what a model's runs have cost, per page.

    Runs answered from the journal, in part or whole, and runs of a model whose
    calls had no price are no basis.

    Args:
        store: Knows the pages of each run.
        model: ``provider/name``.
        ledger: Knows the cost; None: there is none.
    """
    rows = {r.key: r for r in ledger.report(By.ATTEMPT)} if ledger else {}
    runs = list(_priced(store, model, rows))
    return Average(
        model=model,
        runs=len(runs),
        pages=sum(pages for pages, _ in runs),
        cost=NanoUsd(sum(cost for _, cost in runs)),
    )


def _priced(
    store: StoreReader, model: str, rows: Mapping[str, ReportRow]
) -> Iterator[tuple[int, int]]:
    """Yield the pages and the cost of each run that can be a basis."""
    free = model.startswith(OFFLINE_PREFIX)
    for stored in store.all():
        row = rows.get(stored.manifest.attempt_id)
        if stored.manifest.recipe.configuration.model != model or row is None:
            continue
        unpriced = row.calls > 0 and row.cost_nano == 0 and not free
        if not row.replayed and not unpriced:
            yield _read(store, stored).page_count, row.cost_nano


def _read(store: StoreReader, stored: Stored) -> Artifact:
    # Unlike `store.read`, this puts nothing back: an audit writes nothing.
    return read_artifact(store.blobs.get(stored.artifact_id))


def _stale(
    stored: Stored, artifact: Artifact, differences: Sequence[Difference]
) -> StaleArtifact:
    return StaleArtifact(
        stored=stored,
        name=artifact.document.name,
        pages=artifact.page_count,
        differences=tuple(differences),
    )
