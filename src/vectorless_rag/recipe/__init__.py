"""What decides an artifact, its key, and why two keys differ."""

from vectorless_rag.recipe.explain import Difference, explain
from vectorless_rag.recipe.key import (
    RESULT_SETTINGS,
    SCHEMA_VERSION,
    Asked,
    Configuration,
    Recipe,
    configuration_of,
)

__all__ = [
    "RESULT_SETTINGS",
    "SCHEMA_VERSION",
    "Asked",
    "Configuration",
    "Difference",
    "Recipe",
    "configuration_of",
    "explain",
]
