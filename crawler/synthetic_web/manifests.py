"""robots.txt, sitemaps and feeds: what a site says about itself to machines.

Sitemaps as in https://www.sitemaps.org/protocol.html, Atom as in RFC 4287, RSS 2.0.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from xml.sax.saxutils import escape

from freshet.crawler.synthetic_web.addresses import Addresses
from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.resources import Document, Manifest
from freshet.crawler.synthetic_web.site import Site

CONTENT_TYPES: Mapping[Manifest, str] = {
    Manifest.ROBOTS: "text/plain; charset=utf-8",
    Manifest.SITEMAP_INDEX: "application/xml",
    Manifest.SITEMAP: "application/xml",
    Manifest.SITEMAP_GZIP: "application/gzip",
    Manifest.ATOM: "application/atom+xml",
    Manifest.RSS: "application/rss+xml",
}
#: The targets of a site that has sitemaps: an index, and its two parts.
SITEMAPS: Mapping[str, Manifest] = {
    "/sitemap.xml": Manifest.SITEMAP_INDEX,
    "/sitemap-pages.xml": Manifest.SITEMAP,
    "/sitemap-more.xml.gz": Manifest.SITEMAP_GZIP,
}
_SITEMAP_XMLNS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_FEED_ENTRIES = 15


def manifest_bytes(site: Site, manifest: Manifest, at: float, addresses: Addresses) -> bytes:
    """The body of a manifest as of a time."""
    match manifest:
        case Manifest.ROBOTS:
            return (site.robots or "").replace("{origin}", addresses.origin(site.name)).encode()
        case Manifest.SITEMAP_INDEX:
            return _sitemap_index(site, addresses)
        case Manifest.SITEMAP:
            return _sitemap(site, listed(site, at)[::2], at, addresses)
        case Manifest.SITEMAP_GZIP:
            return gzip.compress(_sitemap(site, listed(site, at)[1::2], at, addresses), mtime=0)
        case Manifest.ATOM:
            return _atom(site, at, addresses)
        case Manifest.RSS:
            return _rss(site, at, addresses)


def listed(site: Site, at: float) -> list[tuple[str, Document]]:
    """What the sitemaps of a site list."""
    return [
        (target, page)
        for target, page in site.documents()
        if page.is_alive(at) and page.in_sitemap and target not in site.forbidden
    ]


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sitemap_index(site: Site, addresses: Addresses) -> bytes:
    parts = (target for target, kind in SITEMAPS.items() if kind is not Manifest.SITEMAP_INDEX)
    locations = (escape(addresses.url(Place(site.name, target))) for target in parts)
    entries = "".join(f"<sitemap><loc>{loc}</loc></sitemap>\n" for loc in locations)
    return f'{_XML}<sitemapindex xmlns="{_SITEMAP_XMLNS}">\n{entries}</sitemapindex>\n'.encode()


def _sitemap(
    site: Site, pages: list[tuple[str, Document]], at: float, addresses: Addresses
) -> bytes:
    entries = "".join(
        f"<url><loc>{escape(addresses.url(Place(site.name, target)))}</loc>"
        f"<lastmod>{_iso(page.changed_at(at))}</lastmod></url>\n"
        for target, page in pages
    )
    return f'{_XML}<urlset xmlns="{_SITEMAP_XMLNS}">\n{entries}</urlset>\n'.encode()


def _feed_entries(site: Site, at: float) -> list[tuple[str, Document, float]]:
    entries = [(target, page, page.changed_at(at)) for target, page in listed(site, at)]
    return sorted(entries, key=lambda entry: (-entry[2], entry[0]))[:_FEED_ENTRIES]


def _atom(site: Site, at: float, addresses: Addresses) -> bytes:
    home = addresses.url(Place(site.name, "/"))
    entries = _feed_entries(site, at)
    updated = _iso(max((changed_at for *_, changed_at in entries), default=0.0))
    lines = [
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(site.title)}</title>',
        f"<id>{home}</id><updated>{updated}</updated><author><name>{site.name}</name></author>",
    ]
    for target, page, changed_at in entries:
        url = escape(addresses.url(Place(site.name, target)))
        title = escape(page.content_at(at).title)
        lines += [
            f'<entry><title>{title}</title><id>{url}</id><link href="{url}"/>',
            f"<published>{_iso(page.born_at)}</published>",
            f"<updated>{_iso(changed_at)}</updated></entry>",
        ]
    return "\n".join((*lines, "</feed>\n")).encode()


def _rss(site: Site, at: float, addresses: Addresses) -> bytes:
    home = addresses.url(Place(site.name, "/"))
    lines = [
        f'{_XML}<rss version="2.0"><channel><title>{escape(site.title)}</title>',
        f"<link>{home}</link><description>{escape(site.title)}</description>",
    ]
    for target, page, changed_at in _feed_entries(site, at):
        url = escape(addresses.url(Place(site.name, target)))
        title = escape(page.content_at(at).title)
        lines += [
            f"<item><title>{title}</title><link>{url}</link><guid>{url}</guid>",
            f"<pubDate>{formatdate(changed_at, usegmt=True)}</pubDate></item>",
        ]
    return "\n".join((*lines, "</channel></rss>\n")).encode()
