"""``vectorless-rag store``: what holds it up, and what nothing needs."""

from pathlib import Path

from vectorless_rag.cli.accounting import require_folder
from vectorless_rag.cli.lines import print_json
from vectorless_rag.cli.printing import console, marked
from vectorless_rag.cli.words import counted
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.settings import Settings
from vectorless_rag.source import printable, storable
from vectorless_rag.store import open_reader, place_of
from vectorless_rag.store.bucket import Bucket
from vectorless_rag.store.bucket_promises import try_bucket
from vectorless_rag.store.garbage import unreached
from vectorless_rag.store.promises import Promise, try_promises

BROKEN = 10
"""Exit status where the folder's file system, or the bucket, breaks a promise."""


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Try what the store relies on, of a folder or a bucket; return 0 or 10."""
    place, promises = _tried(settings)
    kept = all(promise.kept for promise in promises)
    if as_json:
        print_json(
            {
                "folder": storable(str(place)),
                "kept": kept,
                "promises": [
                    {"name": p.name, "words": p.words, "broken": p.broken or None}
                    for p in promises
                ],
            }
        )
    else:
        out = console()
        for promise in promises:
            words = f"{promise.name:<12} {promise.words}"
            if promise.broken:
                words += f": {promise.broken}"
            out.print(marked("ok" if promise.kept else "fail", words), soft_wrap=True)
    return 0 if kept else BROKEN


def _tried(settings: Settings) -> tuple[Path, list[Promise]]:
    medium = place_of(settings)
    if isinstance(medium, Bucket):
        return medium.root, try_bucket(medium)
    folder = settings.data_dir.absolute()
    # One that is to be made is on the file system of what it will be made in.
    place = next(p for p in (folder, *folder.parents) if p.is_dir())
    return place, try_promises(place)


def gc(settings: Settings, *, dry_run: bool, as_json: bool) -> int:
    """List what no activation reaches; return 0. Nothing is ever deleted."""
    if not dry_run:
        raise VectorlessRagError(
            Code.SETTINGS_INVALID,
            "gc only lists; pass --dry-run, there is no other mode",
        )
    if settings.store_url is None:
        require_folder(settings)
    found = unreached(open_reader(settings))
    total = sum(item.size_bytes for item in found)
    if as_json:
        files = [{**item.to_json(), "file": storable(item.file)} for item in found]
        print_json({"count": len(found), "bytes": total, "files": files})
        return 0
    out = console()
    for item in found:
        words = f"{item.size_bytes:>12,}  {printable(item.file)}  {item.why}"
        out.print(words, soft_wrap=True, markup=False)
    out.print(
        f"{total:>12,}  bytes in {counted(len(found), 'file')}; nothing was deleted"
    )
    return 0
