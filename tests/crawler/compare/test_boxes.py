"""Boxes that ask for an e-mail address come and go on pages, and nothing is told as a change."""

from collections.abc import Set
from itertools import permutations

import pytest

from freshet.crawler.compare.ladder import Content, Detector
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.page import parse, standing
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.records import Digests, DueUrl, PageHistory
from tests.crawler.reduce.kinds import SENTENCE, SHELLS, page

URL = "https://h.example/a/b/"
TYPE = "text/html"
FORM = (
    "<form action=/subscribe><input type=email placeholder='Your e-mail'><button>Subscribe</button>"
    "</form>"
)
BOXES = {
    "aside": (
        "<aside class=newsletter-signup><h3>Subscribe to our newsletter</h3>"
        f"<p>News of the harbour each Friday.</p>{FORM}</aside>"
    ),
    "offer": (
        "<div class=newsletter-box><h3>Get 10 % off your first order</h3>"
        f"<p>Sign up for our newsletter and be the first to hear of offers.</p>{FORM}</div>"
    ),
    "dialog": (
        f"<dialog open><h2>Stay in touch</h2><p>Sign up for our newsletter.</p>{FORM}</dialog>"
    ),
    "Mailchimp": (
        "<div id=mc_embed_signup><form><h2>Subscribe</h2><div class=indicates-required>* indicates "
        "required</div><label>Email Address *</label><input name=EMAIL type=email>"
        "<input type=submit value=Subscribe></form></div>"
    ),
    "Klaviyo": (
        "<div class='klaviyo-form-XyZ12'><div class=needsclick><p>Join the club for early access"
        f"</p>{FORM}</div></div>"
    ),
    "made classes": (
        "<div class='css-1x2y3z'><div class='css-9q8w'><h3>Keine Geschichte verpassen</h3>"
        f"<p>Unsere besten Geschichten, jeden Sonntag per Mail.</p>{FORM}</div></div>"
    ),
}


class Version:
    """The store of a page of which one version is kept."""

    def __init__(self, last: bytes) -> None:
        self.last = last, TYPE

    async def nothing(self, of: object) -> None:
        return None

    history = predecessor = not_content = again = channels = nothing

    async def sample(self, host_id: int, most: int) -> list[PageHistory]:
        return []

    async def content(self, page_id: int) -> Content:
        return self.last

    async def text(self, due: DueUrl, content: Content) -> Blocks:
        return parse(content[0], URL, content[1]).blocks

    async def standing(
        self, due: DueUrl, content: Content, digests: Set[int], *, in_boxes: bool = False
    ) -> Blocks:
        return standing(*content, digests, in_boxes=in_boxes)


async def is_told(before: bytes, after: bytes) -> bool:
    """Return whether a change of one version to the other is told as such."""
    old, new = (parse(body, URL, TYPE).blocks for body in (before, after))
    kept, made = (sketch(it.texts, it.places) for it in (old, new))
    due = DueUrl(1, URL, URL, 1, 0.0, digests=Digests(b"", kept.text_digest))
    history = PageHistory(kept.to_bytes(), None, 0)
    found = await Detector(Version(before)).detect(
        due, made, 1.0, history, text=new, content=(after, TYPE)
    )
    return found.kind == "changed"


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_box_that_asks_for_an_address_is_no_change(shell: str) -> None:
    told = list[str]()
    for is_big in (False, True):
        plain = page(shell, f"<p>{SENTENCE}</p>", is_big=is_big)
        for name, box in BOXES.items():
            inside = page(shell, f"<p>{SENTENCE}</p>{box}", is_big=is_big)
            for html in (inside, plain + box, plain.replace("<body>", f"<body>{box}")):
                for before, after in permutations((plain.encode(), html.encode())):
                    told += [name] * await is_told(before, after)
    assert told == []


@pytest.mark.parametrize("shell", SHELLS)
async def test_words_beside_a_box_are_a_change(shell: str) -> None:
    plain = page(shell, f"<p>{SENTENCE}</p>", is_big=True)
    for box in BOXES.values():
        more = f"<p>{SENTENCE}</p><p>It closes at 5 on Friday.</p>{box}"
        assert await is_told(plain.encode(), page(shell, more, is_big=True).encode())
