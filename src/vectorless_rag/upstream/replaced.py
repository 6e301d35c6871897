"""What a patch supersedes, by the digest of its source."""

import re
from dataclasses import dataclass

from vectorless_rag.units import Sha256


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """An upstream function that a patch supersedes."""

    path: str

    qualname: str
    """``extract_json`` or ``LocalAPI.method``."""

    sha256: Sha256
    """Digest of its source just before the patch."""

    @classmethod
    def parse(cls, text: str) -> "Replaced":
        """
        Read the value of a ``Replaces`` trailer.

        Raises:
            ValueError: It is not ``path::qualname sha256:<hex>``.
        """
        found = re.fullmatch(r"(\S+)::([\w.]+) sha256:([0-9a-f]{64})", text)
        if found is None:
            raise ValueError(f"Replaces {text!r} is not path::qualname sha256:<hex>")
        path, qualname, digest = found.groups()
        return cls(path=path, qualname=qualname, sha256=Sha256(digest))
