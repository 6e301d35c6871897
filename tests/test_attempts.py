"""An attempt under account, and the budget of the run that it is part of."""

from pathlib import Path
from typing import Any

import pytest

from strategies_tree import sample_recipe
from vectorless_rag.attempts import AccountedAttempt
from vectorless_rag.ledger.book import Ledger
from vectorless_rag.settings import Settings

DEFAULT_NANO = 1_000_000_000


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ([{"budget_usd": "0.004"}, {}], [4_000_000, 4_000_000]),
        ([{}, {"budget_usd": "2"}], [DEFAULT_NANO, 2 * DEFAULT_NANO]),
        ([{}, {}], [DEFAULT_NANO, DEFAULT_NANO]),
    ],
    ids=["kept", "raised", "default"],
)
def test_a_run_goes_on_with_its_budget(
    tmp_path: Path, said: list[dict[str, Any]], limits: list[int]
) -> None:
    """What nobody says again stays; what somebody says holds."""
    found = []
    for given in said:
        settings = Settings.load(data_dir=tmp_path, **given)
        attempt = AccountedAttempt(
            settings=settings, recipe=sample_recipe(), run_id="night"
        )
        with attempt, Ledger.open(settings.effective_ledger_url) as ledger:
            found.append(ledger.budget("run:night").limit)

    assert limits == found
