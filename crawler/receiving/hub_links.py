"""Which hub a page names, and as which topic (W3C WebSub, section 4).

HTTP Link headers count before what stands in the document, as the recommendation says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freshet.crawler.parsing.link_headers import MAX_HEADER, header_links
from freshet.crawler.urls import is_http, resolve, without_fragment
from freshet.storage.entries import Advertised


def advertised(
    headers: Iterable[str], document: Sequence[tuple[str, str]], url: str
) -> Advertised | None:
    """The first hub that is named, and the topic: rel=self, else the URL that was fetched.

    ``headers`` are Link headers, ``document`` links as (relation, reference), found at ``url``.
    """
    named = [
        (token, target)
        for target, parameters in header_links(headers)
        for token in parameters.get("rel", "").lower().split()
    ]
    if not named and not document:
        return None
    hub = _first("hub", named, url) or _first("hub", document, url)
    if hub is None:
        return None
    topic = _first("self", named, url) or _first("self", document, url)
    return Advertised(hub, topic or without_fragment(url))


def _first(relation: str, links: Iterable[tuple[str, str]], base: str) -> str | None:
    for token, reference in links:
        if token == relation:
            url = resolve(reference, base)
            if url is not None and is_http(url) and len(url) <= MAX_HEADER:
                return without_fragment(url)
    return None
