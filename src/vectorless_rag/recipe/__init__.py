"""What decides an artifact, its key, and why two keys differ."""

from vectorless_rag.recipe.explain import Difference, explain
from vectorless_rag.recipe.key import (
    RESULT_SETTINGS,
    SCHEMA_VERSION,
    Configuration,
    Recipe,
    configuration_of,
)
from vectorless_rag.recipe.runtime import COMPANIONS, runtime_digest

__all__ = [
    "COMPANIONS",
    "RESULT_SETTINGS",
    "SCHEMA_VERSION",
    "Configuration",
    "Difference",
    "Recipe",
    "configuration_of",
    "explain",
    "runtime_digest",
]
