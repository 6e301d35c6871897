"""
A stand-in for PyPDF2, for trees that still import it.

PyPDF2 is unmaintained and is not installed. So that a tree before patch 0060 can be
imported at all, this module takes its name, unless the real one is there. It reads
as the real one does, and refuses what the real one refuses.
"""

import importlib.util
import sys
from types import ModuleType
from typing import Any

import pypdf
import pypdf.generic


class DependencyError(Exception):
    """What PyPDF2 raises on AES files when PyCryptodome is not installed."""


class PdfReader(pypdf.PdfReader):
    """Refuses every encrypted file; the real one refuses those with AES."""

    def __init__(self, stream: Any, **options: Any) -> None:
        super().__init__(stream, **options)
        if self.is_encrypted:
            raise DependencyError("PyCryptodome is required for AES algorithm")


def take_the_name() -> None:
    """Let ``import PyPDF2`` find the stand-in where there is no real one."""
    if "PyPDF2" in sys.modules or importlib.util.find_spec("PyPDF2"):
        return
    module = ModuleType("PyPDF2")
    module.PdfReader = PdfReader  # type: ignore[attr-defined]
    module.generic = pypdf.generic  # type: ignore[attr-defined]
    sys.modules["PyPDF2"] = module
    sys.modules["PyPDF2.generic"] = pypdf.generic
