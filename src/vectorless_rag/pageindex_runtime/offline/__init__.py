"""The provider that answers without a network, from the text alone."""

from vectorless_rag.pageindex_runtime.offline.provider import MODEL, OfflineProvider

__all__ = ["MODEL", "OfflineProvider"]
