"""The JSON Schemas that the package publishes, as validators."""

import json
from importlib import import_module
from typing import Any

from conftest import REPOSITORY

SCHEMAS = REPOSITORY / "src" / "vectorless_rag" / "schemas"


def validator(kind: str) -> Any:
    # By name: it comes with another dependency, and brings no types.
    jsonschema = import_module("jsonschema")
    text = (SCHEMAS / f"{kind}.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def faults(kind: str, value: Any) -> list[str]:
    """What is wrong with a value, by the schema of its kind."""
    return [error.message for error in validator(kind).iter_errors(value)]
