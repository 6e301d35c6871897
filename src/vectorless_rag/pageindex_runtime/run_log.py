"""The upstream's log of one run, written line by line."""

import json
import tempfile
from pathlib import Path


class JsonLogger:
    """
    Writes each message once, to a file of its own.

    Args:
        file_path: What is indexed; it names nothing, since names of files may
            hold anything.
    """

    def __init__(self, file_path: object) -> None:
        del file_path
        with tempfile.NamedTemporaryFile(
            prefix="pageindex-", suffix=".jsonl", delete=False
        ) as file:
            self.path = Path(file.name)
        self.filename = self.path.name

    def log(self, level: str, message: object, **fields: object) -> None:
        """Append one line."""
        del fields
        entry = message if isinstance(message, dict) else {"message": message}
        line = json.dumps({"level": level, **entry}, default=str)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def info(self, message: object, **fields: object) -> None:
        """Append what happened."""
        self.log("INFO", message, **fields)

    def error(self, message: object, **fields: object) -> None:
        """Append what went wrong."""
        self.log("ERROR", message, **fields)

    debug = info
    exception = error
