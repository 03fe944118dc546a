"""Requests to the synthetic web and the responses to them, as values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from hashlib import blake2b
from html import escape
from http import HTTPStatus

from freshet.crawler.extensions.lab.synthetic_web.content import (
    Content,
    Form,
    Link,
    SyntheticUrl,
    generator,
    version_at,
)
from freshet.crawler.extensions.lab.synthetic_web.difficult_sites import trap_content
from freshet.crawler.extensions.lab.synthetic_web.site import (
    UTF_8,
    Addresses,
    Encoding,
    Fault,
    File,
    Head,
    LivingPage,
    Redirect,
    SyntheticSite,
    without_utm,
)
from freshet.crawler.extensions.lab.synthetic_web.sites import CONTENT_TYPES, manifest_bytes
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb
from freshet.crawler.fetch.bounds import LruCache
from freshet.storage.records import Validators

# -- conditional -------------------------------------------------------------
_TAG = re.compile(r'(?:W/)?("[^"]*")')


def is_current(known: Validators, etag: str | None, last_modified: str | None) -> bool:
    """Return whether the answer is 304 (RFC 9110, section 13.2.2).

    ``known`` are the values of If-None-Match and If-Modified-Since. The former goes first and is
    compared weakly (section 13.1.2); the latter counts only in its absence, and a date that cannot
    be read does not count (13.1.3).
    """
    if known.etag is not None:
        if known.etag.strip() == "*":
            return True
        return etag is not None and etag.removeprefix("W/") in _TAG.findall(known.etag)
    if known.last_modified is None or last_modified is None:
        return False
    try:
        since = parsedate_to_datetime(known.last_modified).timestamp()
    except ValueError:
        return False
    return parsedate_to_datetime(last_modified).timestamp() <= since


Header = tuple[str, str]
_UNKNOWN = Validators()


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """A response; the carrier adds Content-Length."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return next((value for key, value in self.headers if key == name), None)


def http_date(at: float) -> str:
    """Write Unix seconds as IMF-fixdate (RFC 9110, section 5.6.7)."""
    return formatdate(at, usegmt=True)


def strong_etag(body: bytes) -> str:
    """Return an ETag that differs whenever the bytes do."""
    return f'"{blake2b(body, digest_size=8).hexdigest()}"'


def success(at: float, body: bytes, *headers: Header) -> SiteResponse:
    """Return 200 with the body."""
    return SiteResponse(HTTPStatus.OK, (("Date", http_date(at)), *headers), body)


def content_type(encoding: Encoding) -> Header:
    """Return the Content-Type of an HTML page."""
    charset = f"; charset={encoding.label}" if encoding.in_header else ""
    return "Content-Type", f"text/html{charset}"


def plight(status: int, at: float, *headers: Header) -> SiteResponse:
    """Return a short page for a status that is not a success."""
    phrase = HTTPStatus(status).phrase
    body = f"<!doctype html><title>{status}</title><h1>{status} {phrase}</h1>\n".encode()
    common = (("Date", http_date(at)), ("Content-Type", "text/html; charset=utf-8"))
    return SiteResponse(status, (*common, *headers), body)


# -- noise -------------------------------------------------------------------
# Noise differs between two answers although nobody edited anything. A :class:`_PageTemplate` is a
# page with slots for it: each version is rendered once and filled thousands of times a second.
_NOISE = ("rendered_at", "token", "nonce", "visitors", "advert", "variant")
#: Where a template has a place for noise: two marks about its name.
_MARKS = {name: f"\0{name}\0" for name in _NOISE}


@dataclass(frozen=True, slots=True)
class _PageTemplate:
    """A page's bytes, with slots: ``pieces[0] slots[0] pieces[1] … pieces[-1]``."""

    pieces: tuple[bytes, ...]
    slots: tuple[str, ...]
    codec: str

    @classmethod
    def of(cls, text: str, encoding: Encoding) -> _PageTemplate:
        """Encode the text between the marked slots; unencodable characters become references."""
        first, *others = re.split("\0([a-z_]+)\0", text)
        pieces = [
            each.encode(encoding.codec, "xmlcharrefreplace") for each in (first, *others[1::2])
        ]
        return cls((encoding.mark + pieces[0], *pieces[1:]), tuple(others[::2]), encoding.codec)

    def fill(self, values: Mapping[str, str]) -> bytes:
        """Fill the slots with this noise."""
        filled = [self.pieces[0]]
        for slot, piece in zip(self.slots, self.pieces[1:], strict=True):
            filled += (values[slot].encode(self.codec, "xmlcharrefreplace"), piece)
        return b"".join(filled)


# -- pages -------------------------------------------------------------------
# Noise stands in the frame and in attributes only; the history gives the main content.


def _sentences(site: SyntheticSite, count: int, *key: object) -> tuple[str, ...]:
    """Draw sentences in the site's language."""
    rng = generator(site.name, *key)
    return tuple(site.language.sentence(rng) for _ in range(count))


@dataclass(frozen=True, slots=True)
class Renderer:
    """A renderer of one site's pages under the addresses of its web."""

    site: SyntheticSite
    addresses: Addresses

    def page(
        self, head: Head, encoding: Encoding, content: Content, edited: Counter[Form]
    ) -> _PageTemplate:
        """Render a whole page with slots for noise; ``edited`` are the edits of the frame."""
        revision = edited["footer"]
        body = self.site.skin(edited).format(
            title=escape(self.site.title),
            navigation=self._navigation(edited["navigation"]),
            main=self._main(content),
            build=f"{generator(self.site.name, 'build', revision).getrandbits(32):08x}",
            revision=revision,
            **_MARKS,
        )
        text = f"{self._head(head, encoding, content)}{body}</body></html>\n"
        return _PageTemplate.of(text, encoding)

    def _head(self, head: Head, encoding: Encoding, content: Content) -> str:
        name = self.site.name
        lines = ["<!doctype html>", f'<html lang="{self.site.language.code}"><head>']
        if encoding.in_meta:
            lines.append(f'<meta charset="{encoding.label}">')
        if head.titled:
            lines.append(f"<title>{escape(content.title)} – {escape(self.site.title)}</title>")
        if head.base is not None:
            lines.append(f'<base href="{escape(head.base)}">')
        if head.robots:
            lines.append(f'<meta name="robots" content="{escape(head.robots)}">')
        if head.canonical is not None:
            canonical = self.addresses.url(SyntheticUrl(name, head.canonical))
            lines.append(f'<link rel="canonical" href="{escape(canonical)}">')
        if head.refresh is not None:
            lines.append(f'<meta http-equiv="Refresh" content="0; url={escape(head.refresh)}">')
        if feed := self.site.feed:
            mime = f"application/{feed[1]}+xml"
            lines.append(f'<link rel="alternate" type="{mime}" href="{escape(feed[0])}">')
        return "\n".join((*lines, "</head><body>\n"))

    def _main(self, content: Content) -> str:
        lines = [f"<h1>{escape(content.title)}</h1>"]
        lines += [f'<p class="{block.kind}">{escape(block.text)}</p>' for block in content.blocks]
        if content.links:
            items = (f"<li>{self._anchor(link)} {escape(link.note)}</li>" for link in content.links)
            lines.append("<ul>\n{}\n</ul>".format("\n".join(items)))
        return "\n".join((*lines, ""))

    def _navigation(self, version: int) -> str:
        word = self.site.language.word(generator(self.site.name, "navigation", version))
        items = (f"<li>{self._anchor(link)}</li>" for link in self.site.frame.links)
        return f'<ul>{"".join(items)}<li><a href="#top">{word} {version}</a></li></ul>'

    def _anchor(self, link: Link) -> str:
        rel = f' rel="{escape(link.rel)}"' if link.rel else ""
        return f'<a href="{escape(self._href(link))}"{rel}>{escape(link.text)}</a>'

    def _href(self, link: Link) -> str:
        if link.href is not None:
            own = self.addresses.authorities[self.site.name]
            return link.href.replace("{authority}", own).replace("{AUTHORITY}", own.upper())
        if link.leads_to is None or link.leads_to.host == self.site.name:
            return link.leads_to.target if link.leads_to else "#"
        return self.addresses.url(link.leads_to)


# -- responder ---------------------------------------------------------------
# Deterministic: the same requests in the same order at the same times get the same answers.
#: Rendered versions that are kept, those used last.
_TEMPLATES = 4096
#: A place, the version of its content, and that of its site's frame.
_Key = tuple[SyntheticUrl, int, int]


@dataclass(frozen=True, slots=True)
class _Face:
    """A version of a site's frame, its start, and the edits before.

    Each answer shows one of the ``adverts`` of a campaign, and one of the two ``variants`` of a
    sentence that the site tests on its visitors.
    """

    version: int
    since: float
    edited: Counter[Form]
    adverts: tuple[str, ...]
    variants: tuple[str, ...]


class Responder:
    """Answers for all sites of a web.

    Its state is the number of requests for each place (noise and faults depend on it), and a cache
    of rendered pages.
    """

    def __init__(self, web: SyntheticWeb, addresses: Addresses) -> None:
        self.addresses = addresses
        self._web = web
        self._asked: Counter[SyntheticUrl] = Counter()
        self._templates: LruCache[_Key, _PageTemplate] = LruCache(_TEMPLATES)
        self._faces: dict[str, _Face] = {}
        self._renderers = {name: Renderer(site, addresses) for name, site in web.sites.items()}

    def answer(self, asked: SyntheticUrl, at: float, known: Validators = _UNKNOWN) -> SiteResponse:
        """Return the response at a virtual time in Unix seconds; 421 for an unknown site.

        ``asked`` is the site, and its target (path and query) as on the wire. The answer is 304
        without a body if the client already has what it would be sent, as its validators tell.
        """
        found = self._answer(asked, at)
        etag, last_modified = found.header("ETag"), found.header("Last-Modified")
        if found.status != HTTPStatus.OK or not is_current(known, etag, last_modified):
            return found
        kept = {"Date", "ETag", "Last-Modified"}
        headers = (header for header in found.headers if header[0] in kept)
        return SiteResponse(HTTPStatus.NOT_MODIFIED, tuple(headers))

    def _answer(self, asked: SyntheticUrl, at: float) -> SiteResponse:
        site = self._web.sites.get(asked.host)
        if site is None:
            return plight(421, at)
        moved = site.moved_to and Redirect(301, SyntheticUrl(site.moved_to, asked.target))
        match moved or site.find(asked.target):
            case LivingPage() as document:
                return self._document(site, document, asked, at)
            case Fault() as fault:
                return self._fault(site, fault, asked, at)
            case Redirect() as redirect:
                return self._redirect(site, redirect, at)
            case None:
                return self._trap_or_nothing(site, asked, at)
            case File(mime, body):
                pass
            case manifest:
                mime = CONTENT_TYPES[manifest]
                body = manifest_bytes(site, manifest, at, self.addresses)
        return success(at, body, ("ETag", strong_etag(body)), ("Content-Type", mime))

    def _document(
        self, site: SyntheticSite, document: LivingPage, asked: SyntheticUrl, at: float
    ) -> SiteResponse:
        if at < document.born_at:
            return plight(404, at)
        if not document.is_alive(at):
            if document.moved_to is None:
                return plight(410, at)
            return self._redirect(
                site, Redirect(301, SyntheticUrl(site.name, document.moved_to)), at
            )
        version = version_at(document.history.revisions, at)
        face = self._face(site, at)
        key = (_place(asked), version, face.version)
        template = self._template(document, key, face.edited)
        body = template.fill(self._noise(asked, face, at))
        changed_at = max(document.changed_at(at), face.since)
        validators = self._validators(site, key, changed_at, body, noisy=bool(template.slots))
        headers = [*validators, content_type(document.encoding)]
        if document.head.robots_header:
            headers.append(("X-Robots-Tag", document.head.robots_header))
        return success(at, body, *headers)

    def _fault(
        self, site: SyntheticSite, fault: Fault, asked: SyntheticUrl, at: float
    ) -> SiteResponse:
        place = _place(asked)
        if fault.then is not None and not fault.strikes(self._asked[place]):
            return self._document(site, fault.then, asked, at)
        self._asked[place] += 1
        if fault.retry_after_s is None:
            return plight(fault.status, at)
        date = http_date(at // 1 + fault.retry_after_s)
        retry_after = date if fault.as_date else str(fault.retry_after_s)
        return plight(fault.status, at, ("Retry-After", retry_after))

    def _redirect(self, site: SyntheticSite, redirect: Redirect, at: float) -> SiteResponse:
        if redirect.to is None:
            return plight(redirect.status, at)
        relative = redirect.relative and redirect.to.host == site.name
        location = redirect.to.target if relative else self.addresses.url(redirect.to)
        return plight(redirect.status, at, ("Location", location))

    def _trap_or_nothing(self, site: SyntheticSite, asked: SyntheticUrl, at: float) -> SiteResponse:
        trap = site.trap(asked.target)
        if trap is None:
            return plight(404, at)
        face = self._face(site, at)
        values = self._noise(asked, face, at)
        content = trap_content(site, trap, asked.target, values["session"], at)
        if content is None:
            return plight(404, at)
        page = self._renderers[site.name].page(Head(), UTF_8, content, face.edited)
        return success(at, page.fill(values), content_type(UTF_8))

    # -- what answers are made of ------------------------------------------------------

    def _noise(self, asked: SyntheticUrl, face: _Face, at: float) -> dict[str, str]:
        """Return the noise of an answer; each draws an advertisement and a variant."""
        place = _place(asked)
        serial = self._asked[place]
        self._asked[place] += 1
        key = f"{self._web.seed}/{place.host}{place.target}/{serial}".encode()
        digest = blake2b(key, digest_size=32)
        drawn, chosen = digest.hexdigest(), digest.digest()
        return {
            "rendered_at": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "token": drawn[:16],
            "nonce": drawn[16:28],
            "session": drawn[28:],
            "visitors": str(1000 + 7 * serial + chosen[0] % 7),
            "advert": face.adverts[chosen[1] % len(face.adverts)],
            "variant": face.variants[chosen[2] % len(face.variants)],
        }

    def _face(self, site: SyntheticSite, at: float) -> _Face:
        version = version_at(site.frame.revisions, at)
        face = self._faces.get(site.name)
        if face is None or face.version != version:
            edited = Counter(revision.form for revision in site.frame.revisions[:version])
            since = site.frame.revisions[version - 1].at if version else float("-inf")
            adverts = _sentences(site, 5, "advert", edited["advert"])
            variants = _sentences(site, 2, "variants")
            face = self._faces[site.name] = _Face(version, since, edited, adverts, variants)
        return face

    def _template(self, document: LivingPage, key: _Key, edited: Counter[Form]) -> _PageTemplate:
        template = self._templates.use(key)
        if template is None:
            place, version, _ = key
            content = document.history.content(version)
            renderer = self._renderers[place.host]
            template = renderer.page(document.head, document.encoding, content, edited)
            self._templates[key] = template
        return template

    def _validators(
        self, site: SyntheticSite, key: _Key, changed_at: float, body: bytes, *, noisy: bool
    ) -> list[Header]:
        """Return the validators that the site sends with a version of a document."""
        modified = ("Last-Modified", http_date(changed_at))
        match site.validation:
            case "none":
                return []
            case "bytes":
                return [("ETag", strong_etag(body))]
            case "date":
                return [modified]
            case "content":
                # With noise the bytes of one version differ: its tag is weak.
                weak = "W/" if noisy else ""
                return [("ETag", weak + strong_etag(f"{self._web.seed}/{key}".encode())), modified]


def _place(asked: SyntheticUrl) -> SyntheticUrl:
    return SyntheticUrl(asked.host, without_utm(asked.target))
