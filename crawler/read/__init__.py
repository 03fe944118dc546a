"""Readers of a store: documents, chunks, the changefeed, and the API over HTTP."""
