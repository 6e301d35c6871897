"""Put one checkout of the upstream in front, and see that it is the one tested."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent

_GIVEN = os.environ.get("VECTORLESS_RAG_CHECKOUT")
CHECKOUT = Path(_GIVEN or HERE.parents[1] / "build" / "pageindex").resolve()

if not (CHECKOUT / "pageindex" / "__init__.py").is_file():
    raise pytest.UsageError(f"no pageindex in {CHECKOUT}; run `make setup`")

sys.path.insert(0, str(CHECKOUT))
# Behind everything else: the modules here have common names.
sys.path.append(str(HERE))

if _GIVEN:
    import hypothesis

    # A proof fails or passes for its tree, not for its draw.
    hypothesis.settings.register_profile(
        "proofs", derandomize=True, database=None, deadline=None
    )
    hypothesis.settings.load_profile("proofs")


@pytest.fixture(autouse=True)
def _the_checkout_under_test() -> Iterator[None]:
    yield
    module = sys.modules.get("pageindex")
    if module is not None and CHECKOUT not in Path(str(module.__file__)).parents:
        pytest.fail(f"pageindex came from {module.__file__}")
