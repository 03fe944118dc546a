"""HTML: a version of a page inside a version of its site's frame.

Noise stands in the frame and in attributes only; main content is what the history says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import chain

from freshet.crawler.synthetic_web.addresses import Addresses
from freshet.crawler.synthetic_web.chance import generator
from freshet.crawler.synthetic_web.content import Content, Form, Link, Place
from freshet.crawler.synthetic_web.noise import Slot, Template
from freshet.crawler.synthetic_web.resources import Encoding, Head
from freshet.crawler.synthetic_web.site import Clutter, Site, Skin

Parts = Iterator[str | Slot]


@dataclass(frozen=True, slots=True)
class Look:
    """A version of a site's frame: how often its parts were changed so far."""

    footer: int
    navigation: int
    advert: int
    banner: int = 0
    rebuild: int = 0


def look_at(site: Site, version: int) -> Look:
    """The frame of a site after so many revisions."""
    past = [revision.form for revision in site.frame.revisions[:version]]
    return Look(
        footer=past.count(Form.FOOTER),
        navigation=past.count(Form.NAVIGATION),
        advert=past.count(Form.ADVERT),
        banner=past.count(Form.BANNER),
        rebuild=past.count(Form.REBUILD),
    )


def adverts(site: Site, look: Look) -> tuple[str, ...]:
    """The advertisements of a campaign, of which each answer shows one."""
    rng = generator(site.name, "advert", look.advert)
    return tuple(site.language.sentence(rng) for _ in range(5))


def variants(site: Site) -> tuple[str, ...]:
    """The two versions of a sentence that the site tries on its visitors."""
    rng = generator(site.name, "variants")
    return tuple(site.language.sentence(rng) for _ in range(2))


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders the pages of one site under the addresses of its web."""

    site: Site
    addresses: Addresses

    def page(self, head: Head, encoding: Encoding, content: Content, look: Look) -> Template:
        """A whole page, with slots for noise."""
        skins = {
            Skin.SEMANTIC: self._semantic,
            Skin.SOUP: self._soup,
            Skin.BARE: self._bare,
            Skin.CLUTTERED: self._cluttered,
        }
        body = skins[self.site.skin](content, look)
        start = self._head(head, encoding, content)
        return Template.of(chain((start,), body, ("</body></html>\n",)), encoding)

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
            canonical = self.addresses.url(Place(name, head.canonical))
            lines.append(f'<link rel="canonical" href="{escape(canonical)}">')
        if head.refresh is not None:
            lines.append(f'<meta http-equiv="Refresh" content="0; url={escape(head.refresh)}">')
        if feed := self.site.feed:
            mime = f"application/{feed[1]}+xml"
            lines.append(f'<link rel="alternate" type="{mime}" href="{escape(feed[0])}">')
        return "\n".join((*lines, "</head><body>\n"))

    # -- skins ---------------------------------------------------------------------

    def _bare(self, content: Content, look: Look) -> Parts:
        yield self._main(content)

    def _semantic(self, content: Content, look: Look) -> Parts:
        yield from ('<script nonce="', Slot.NONCE, '">window.ready = true;</script>\n')
        yield '<div class="cookie-banner" role="dialog">We use cookies. <button>OK</button></div>\n'
        yield f"<header><p>{escape(self.site.title)}</p>"
        yield f"<nav>{self._navigation(look)}</nav></header>"
        yield from ('\n<main><article data-token="', Slot.NONCE, '">\n')
        yield self._main(content)
        yield from ('</article></main>\n<aside class="advert"><p>', Slot.ADVERT, "</p></aside>\n")
        yield from ("<footer>", *self._form(), *self._stamps(look), "</footer>\n")

    def _soup(self, content: Content, look: Look) -> Parts:
        yield f'<div class="header"><div class="logo">{escape(self.site.title)}</div>'
        yield f'<div class="navigation">{self._navigation(look)}</div></div>\n'
        yield from ('<div class="content" data-token="', Slot.NONCE, '">\n')
        yield self._main(content)
        yield from ('</div>\n<div class="sidebar"><div class="ad">', Slot.ADVERT, "</div>")
        yield '<div class="cookie-notice">This shop uses cookies.</div></div>\n'
        yield from ('<div class="footer">', *self._form(), *self._stamps(look), "</div>\n")

    def _cluttered(self, content: Content, look: Look) -> Parts:
        """Frame and noise amid the content; a rebuild gives the wrappers other names."""
        rng = generator(self.site.name, "rebuild", look.rebuild)
        name, slogan = self.site.language.word(rng), self.site.language.sentence(rng)
        clutter = self.site.clutter
        yield f'<div class="{escape(name)}-page"><div><p>{escape(slogan)}</p></div>\n'
        if look.banner % 2:
            notice = generator(self.site.name, "notice", look.banner)
            yield f"<div><p>{escape(self.site.language.sentence(notice))}</p></div>\n"
        if Clutter.ADVERTS in clutter:
            yield from ("<div><section><p>", Slot.ADVERT, "</p></section></div>\n")
        yield f'<div class="{escape(name)}-story">\n{self._main(content)}'
        if Clutter.VARIANTS in clutter:
            yield from ("<blockquote>", Slot.VARIANT, "</blockquote>\n")
        if Clutter.STAMPS in clutter:
            yield from ("<p>It is ", Slot.RENDERED_AT, " here, and ", Slot.VISITORS)
            yield from (" people came by.</p><p>Your reference is ", Slot.TOKEN, ".</p>\n")
        yield f"</div><div><p>{escape(self.site.title)}, part {look.footer}.</p></div></div>\n"

    # -- parts ---------------------------------------------------------------------

    def _main(self, content: Content) -> str:
        lines = [f"<h1>{escape(content.title)}</h1>"]
        lines += [f'<p class="{block.kind}">{escape(block.text)}</p>' for block in content.blocks]
        if content.links:
            items = (f"<li>{self._anchor(link)} {escape(link.note)}</li>" for link in content.links)
            lines.append("<ul>\n{}\n</ul>".format("\n".join(items)))
        return "\n".join((*lines, ""))

    def _navigation(self, look: Look) -> str:
        rng = generator(self.site.name, "navigation", look.navigation)
        word = self.site.language.word(rng)
        items = (f"<li>{self._anchor(link)}</li>" for link in self.site.frame.links)
        return f'<ul>{"".join(items)}<li><a href="#top">{word} {look.navigation}</a></li></ul>'

    def _form(self) -> tuple[str | Slot, ...]:
        start = '<form method="post" action="/subscribe"><input type="hidden" name="csrf_token"'
        return (start, ' value="', Slot.TOKEN, '"><button>Subscribe</button></form>')

    def _stamps(self, look: Look) -> tuple[str | Slot, ...]:
        build = generator(self.site.name, "build", look.footer).getrandbits(32)
        return (
            *("<p>Page rendered at ", Slot.RENDERED_AT, "</p><p>", Slot.VISITORS),
            f" visitors today</p><p>Build {build:08x}, revision {look.footer}</p>",
        )

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
