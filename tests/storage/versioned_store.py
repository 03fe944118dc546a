"""A small store whose pages have versions with bytes."""

import asyncio
from hashlib import blake2b
from pathlib import Path

import zstandard

from tests.storage.small_store import SmallStore, small_store


def versioned_store(path: Path, at: float) -> SmallStore:
    """A store with a host and a run, which began at ``at``; pages are to be added."""
    store = asyncio.run(small_store(path))
    store.run(at)
    store.host()
    return store


def html(*paragraphs: str) -> bytes:
    """A page of these paragraphs, with a heading."""
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    return f"<title>T</title><main><h1>Heading</h1>{body}</main>".encode()


def version(
    store: SmallStore,
    page: int,
    at: float,
    body: bytes,
    *,
    keep: bool = True,
    kind: str | None = "changed",
) -> int:
    """Add a version of a page, and the visit that found it; its body is kept or not."""
    digest = blake2b(body, digest_size=16).digest()
    if keep:
        store.insert(
            "body", digest=digest, stored_at=at, size_bytes=len(body), zstd=zstandard.compress(body)
        )
    added = store.insert(
        "version", page_id=page, at=at, body_digest=digest, text_digest=digest,
        content_type="text/html",
    )  # fmt: skip
    if kind is not None:
        store.observe(page, at, kind, version_id=added)
    return added
