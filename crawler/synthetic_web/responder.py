"""What the servers of a web answer: a request and a time in, a response out.

Deterministic: the same requests in the same order at the same times get the same answers.
The server and the in-process fetcher only carry them.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

from freshet.crawler.synthetic_web.addresses import Addresses
from freshet.crawler.synthetic_web.answers import (
    Answer,
    Ask,
    Validators,
    content_type,
    failure,
    plight,
    strong_etag,
    success,
)
from freshet.crawler.synthetic_web.content import Place, version_at
from freshet.crawler.synthetic_web.manifests import CONTENT_TYPES, manifest_bytes
from freshet.crawler.synthetic_web.noise import Slot, Template, noise
from freshet.crawler.synthetic_web.pages import Look, Renderer, adverts, look_at, variants
from freshet.crawler.synthetic_web.resources import (
    UTF_8,
    Document,
    Fault,
    File,
    Head,
    Manifest,
    Redirect,
)
from freshet.crawler.synthetic_web.site import Site, Skin, Validation, without_utm
from freshet.crawler.synthetic_web.traps import trap_content
from freshet.crawler.synthetic_web.web import SyntheticWeb

#: Rendered versions that are kept, those used last.
_TEMPLATES = 4096
#: A place, the version of its content, and that of its site's frame.
_Key = tuple[Place, int, int]


@dataclass(frozen=True, slots=True)
class _Face:
    """A version of a site's frame, since when it holds, its adverts and variants."""

    version: int
    since: float
    look: Look
    adverts: tuple[str, ...]
    variants: tuple[str, ...]


class Responder:
    """Answers for all sites of a web.

    Its state is how often each place was asked for (the noise and the faults depend on
    it), and pages that are rendered already.
    """

    def __init__(self, web: SyntheticWeb, addresses: Addresses) -> None:
        self.addresses = addresses
        self._web = web
        self._asked: Counter[Place] = Counter()
        self._templates: OrderedDict[_Key, Template] = OrderedDict()
        self._faces: dict[str, _Face] = {}
        self._renderers = {name: Renderer(site, addresses) for name, site in web.sites.items()}

    def answer(self, ask: Ask, at: float) -> Answer:
        """The response at a virtual time in Unix seconds; 421 for a site that is none."""
        site = self._web.sites.get(ask.host)
        if site is None:
            return plight(421, at)
        if site.moved_to is not None:
            return self._redirect(site, Redirect(301, Place(site.moved_to, ask.target)), at)
        match site.find(ask.target):
            case Document() as document:
                return self._document(site, document, ask, at)
            case Fault() as fault:
                return self._fault(site, fault, ask, at)
            case None:
                return self._trap_or_nothing(site, ask, at)
            case resource:
                return self._fixed(site, resource, ask, at)

    def _document(self, site: Site, document: Document, ask: Ask, at: float) -> Answer:
        if not document.is_alive(at):
            return self._departed(site, document, at)
        version = version_at(document.history.revisions, at)
        face = self._face(site, at)
        key = (_place(site, ask), version, face.version)
        template = self._template(document, key, face.look)
        body = template.fill(self._noise(site, ask, face, at))
        changed_at = max(document.changed_at(at), face.since)
        validators = self._validators(site, key, changed_at, body)
        headers = [content_type(document.encoding)]
        if document.head.robots_header:
            headers.append(("X-Robots-Tag", document.head.robots_header))
        return success(ask, at, body, validators, *headers)

    def _departed(self, site: Site, document: Document, at: float) -> Answer:
        if at < document.born_at:
            return plight(404, at)
        if document.moved_to is None:
            return plight(410, at)
        return self._redirect(site, Redirect(301, Place(site.name, document.moved_to)), at)

    def _fault(self, site: Site, fault: Fault, ask: Ask, at: float) -> Answer:
        place = _place(site, ask)
        if fault.then is not None and not fault.strikes(self._asked[place]):
            return self._document(site, fault.then, ask, at)
        self._asked[place] += 1
        return failure(fault, at)

    def _fixed(
        self, site: Site, resource: Redirect | File | Manifest, ask: Ask, at: float
    ) -> Answer:
        match resource:
            case Redirect():
                return self._redirect(site, resource, at)
            case File(mime, body):
                pass
            case _:
                mime = CONTENT_TYPES[resource]
                body = manifest_bytes(site, resource, at, self.addresses)
        return success(ask, at, body, Validators(strong_etag(body)), ("Content-Type", mime))

    def _redirect(self, site: Site, redirect: Redirect, at: float) -> Answer:
        if redirect.to is None:
            return plight(redirect.status, at)
        relative = redirect.relative and redirect.to.host == site.name
        location = redirect.to.target if relative else self.addresses.url(redirect.to)
        return plight(redirect.status, at, ("Location", location))

    def _trap_or_nothing(self, site: Site, ask: Ask, at: float) -> Answer:
        trap = site.trap(ask.target)
        if trap is None:
            return plight(404, at)
        face = self._face(site, at)
        values = self._noise(site, ask, face, at)
        content = trap_content(site, trap, ask.target, values[Slot.SESSION], at)
        if content is None:
            return plight(404, at)
        page = self._renderers[site.name].page(Head(), UTF_8, content, face.look)
        return success(ask, at, page.fill(values), Validators(), content_type(UTF_8))

    # -- what answers are made of ------------------------------------------------------

    def _noise(self, site: Site, ask: Ask, face: _Face, at: float) -> dict[Slot, str]:
        place = _place(site, ask)
        serial = self._asked[place]
        self._asked[place] += 1
        return noise(self._web.seed, place, serial, at, face.adverts, face.variants)

    def _face(self, site: Site, at: float) -> _Face:
        version = version_at(site.frame.revisions, at)
        face = self._faces.get(site.name)
        if face is None or face.version != version:
            look = look_at(site, version)
            since = site.frame.revisions[version - 1].at if version else float("-inf")
            face = self._faces[site.name] = _Face(
                version, since, look, adverts(site, look), variants(site)
            )
        return face

    def _template(self, document: Document, key: _Key, look: Look) -> Template:
        template = self._templates.get(key)
        if template is None:
            place, version, _ = key
            content = document.history.content(version)
            renderer = self._renderers[place.host]
            template = renderer.page(document.head, document.encoding, content, look)
            self._templates[key] = template
            if len(self._templates) > _TEMPLATES:
                self._templates.popitem(last=False)
        self._templates.move_to_end(key)
        return template

    def _validators(self, site: Site, key: _Key, changed_at: float, body: bytes) -> Validators:
        """What the site says of a version of a document."""
        if site.validation is Validation.NONE:
            return Validators()
        if site.validation is Validation.BYTES:
            return Validators(strong_etag(body))
        if site.validation is Validation.DATE:
            return Validators(None, changed_at)
        # With noise the bytes of one version differ: its tag is weak.
        weak = "" if site.skin is Skin.BARE else "W/"
        return Validators(weak + strong_etag(f"{self._web.seed}/{key}".encode()), changed_at)


def _place(site: Site, ask: Ask) -> Place:
    return Place(site.name, without_utm(ask.target))
