"""Hosts for the benchmark of block pages: generated pages of all sorts, some of them blocked.

Every page of a host stands in the host's frame. Beside long articles there are the short
pages that are hard to tell from block pages: empty categories, products, notes, lists, log-in boxes
in the header, cookie banners above an article.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_WORDS = (
    "river stone lantern market harbour bread winter garden letter copper bridge school "
    "violin mountain paper orchard clock window meadow engine story wool museum island road "
    "kitchen forest river-bank season colour table village thunder ribbon coast valley ferry "
    "cellar feather anchor basket chapel drum field glass hill ink jar kettle ladder mill "
    "nest oven pillow quilt rope saddle tile urn vine wagon yard barn candle"
).split()
_FILL = "the a of and with under near for from that is was are has seen made kept old small".split()


@dataclass(frozen=True, slots=True)
class Served:
    """A page of a host: its URL, its HTML, and whether it is a block page of some kind."""

    url: str
    html: str
    kind: str | None = None


class SiteMaker:
    """Makes the pages of one host, from a generator that is seeded by the caller."""

    def __init__(self, host: str, draw: random.Random) -> None:
        self.host = host
        self._draw = draw
        self._menu = [self._title() for _ in range(6)]
        self._sorts: list[Callable[[], tuple[str, str]]] = [
            self._article, self._article, self._product, self._category, self._note, self._list,
            self._banner_article,
        ]  # fmt: skip

    def page(self, number: int) -> Served:
        """One of the host's real pages, of a sort by its number."""
        title, main = self._sorts[number % len(self._sorts)]()
        name = f"{title.lower().replace(' ', '-')}-{number}"
        url = f"https://{self.host}/{self._draw.choice(_WORDS)}/{name}"
        return Served(url, self._framed(title, main))

    def block_page(self, template: str, kind: str, url: str | None = None) -> Served:
        """A URL that answers with the block page, with fresh values."""
        url = url or f"https://{self.host}/{self._draw.choice(_WORDS)}/{self._name()}"
        return Served(url, self.filled(template, url), kind)

    def filled(self, template: str, url: str) -> str:
        """The page with values for its placeholders, as they are at this serving."""
        draw = self._draw
        values = {
            "host": self.host,
            "path": url.partition(self.host)[2],
            "ip": ".".join(str(draw.randrange(1, 255)) for _ in range(4)),
            "time": f"2026-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02} "
            f"{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}",
        }
        for name, value in values.items():
            template = template.replace("{{" + name + "}}", value)
        while "{{token}}" in template:
            template = template.replace("{{token}}", f"{draw.getrandbits(64):016x}", 1)
        while "{{number}}" in template:
            template = template.replace("{{number}}", str(draw.randrange(2, 99_999)), 1)
        return template

    def _name(self) -> str:
        return (
            f"{self._draw.choice(_WORDS)}-{self._draw.choice(_WORDS)}-{self._draw.randrange(1000)}"
        )

    def _title(self) -> str:
        return " ".join(self._draw.sample(_WORDS, 2)).capitalize()

    def _sentence(self, words: int = 12) -> str:
        drawn = [self._draw.choice(_WORDS if n % 2 else _FILL) for n in range(words)]
        return " ".join(drawn).capitalize() + "."

    def _framed(self, title: str, main: str) -> str:
        menu = "".join(f'<li><a href="/{n}">{name}</a></li>' for n, name in enumerate(self._menu))
        login = (
            '<form action="/login" method="post"><input name="user" placeholder="User">'
            '<input type="password" name="pass" placeholder="Password">'
            "<button>Log in</button></form>"
        )
        return (
            f'<!doctype html><html lang="en"><head><title>{title} | {self.host}'
            "</title></head><body>"
            f"<header><a href='/'>{self.host}</a>{login}</header><nav><ul>{menu}</ul></nav>"
            f"<main>{main}</main><footer><a href='/terms'>Terms</a> <a href='/privacy'>Privacy</a>"
            "</footer></body></html>"
        )

    def _paragraphs(self, count: int) -> str:
        return "".join(f"<p>{self._sentence()} {self._sentence()}</p>" for _ in range(count))

    def _article(self) -> tuple[str, str]:
        title = self._title()
        return title, f"<h1>{title}</h1>{self._paragraphs(self._draw.randrange(6, 30))}"

    def _banner_article(self) -> tuple[str, str]:
        title, main = self._article()
        banner = (
            "<div class='cookie-banner'><p>We value your privacy. We and our 80 partners use "
            "cookies.</p><button>Accept all</button><button>Reject all</button></div>"
        )
        return title, banner + main

    def _product(self) -> tuple[str, str]:
        title = self._title()
        price = f"£{self._draw.randrange(3, 90)}.00"
        stock = self._draw.choice(["In stock", "Currently unavailable", "Two left"])
        return title, f"<h1>{title}</h1><p>{price}</p><p>{stock}</p><p>{self._sentence(9)}</p>"

    def _category(self) -> tuple[str, str]:
        title = self._title()
        return title, f"<h1>{title}</h1><p>There are no products in this category yet.</p>"

    def _note(self) -> tuple[str, str]:
        title = self._title()
        return title, f"<h1>{title}</h1><p>{self._sentence(16)}</p>"

    def _list(self) -> tuple[str, str]:
        title = self._title()
        rows = "".join(f"<li><a href='/p/{n}'>{self._title()}</a></li>" for n in range(12))
        return title, f"<h1>{title}</h1><ul>{rows}</ul>"
