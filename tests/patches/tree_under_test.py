"""The modules of the tree under test, importable before patch 0060 too."""

from patches.parser_stand_in import take_the_name

take_the_name()

from pageindex import (  # noqa: E402  (only once PyPDF2 can be found)
    flash,
    local_api,
    page_index_classic,
    page_index_md,
    tree_optimize,
    utils,
)
from pageindex.flash import parser_pdfium_parallel as layout  # noqa: E402

classic = page_index_classic

__all__ = [
    "classic",
    "flash",
    "layout",
    "local_api",
    "page_index_md",
    "tree_optimize",
    "utils",
]
