"""Vectorless RAG's ingestion runtime: a PDF in, an audited tree of sections out."""

__version__ = "0.1.0"
