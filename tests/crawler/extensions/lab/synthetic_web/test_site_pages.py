from collections import Counter

import pytest
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.extensions.lab.synthetic_web.answers import Renderer
from freshet.crawler.extensions.lab.synthetic_web.content import (
    DAY_S,
    ENGLISH,
    Form,
    Link,
    Revision,
    SyntheticUrl,
)
from freshet.crawler.extensions.lab.synthetic_web.site import (
    UTF_8,
    Addresses,
    Frame,
    Head,
    LivingPage,
    Skin,
    SyntheticSite,
    semantic,
    soup,
    story,
)
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, showcase
from scripts.synthetic_truth import Truth
from tests.crawler.extensions.lab.synthetic_web.browsing import (
    frame_text,
    get,
    main_text,
    responder_for,
)

FRAME_FORMS: tuple[Form, ...] = ("footer", "navigation", "advert")
HERE = SyntheticUrl("site", "/")


def bare(_edited: Counter[Form]) -> str:
    return "{main}"


def one_page_web(skin: Skin, *frame_forms: Form) -> SyntheticWeb:
    """The frame changes at 10, 20 …, the page at 5."""
    prose = story(("key",), ENGLISH, (Revision(5.0, "word"),))
    revisions = tuple(Revision(10.0 * n, form) for n, form in enumerate(frame_forms, start=1))
    site = SyntheticSite(
        name="site", title="Title & Co", resources={"/": LivingPage(history=prose, born_at=0.0)},
        skin=skin, frame=Frame((Link("Home", HERE),), revisions),
    )  # fmt: skip
    return SyntheticWeb(1, {"site": site}, 0.0, 100.0)


@pytest.mark.parametrize("skin", [semantic, soup, bare])
def test_an_edit_of_main_content_changes_the_main_text_alone(skin: Skin) -> None:
    responder = responder_for(one_page_web(skin))
    before, after = (get(responder, HERE, at).body for at in (4.0, 5.0))
    assert main_text(before) != main_text(after)


@pytest.mark.parametrize("skin", [semantic, soup])
@pytest.mark.parametrize("form", FRAME_FORMS)
def test_an_edit_of_the_frame_leaves_the_main_text(skin: Skin, form: Form) -> None:
    # The same request number before and after: noise is the same but for the time.
    web = one_page_web(skin, form)
    before, after = (get(responder_for(web), HERE, at).body for at in (9.0, 10.0))
    assert main_text(before) == main_text(after)
    assert frame_text(before).replace("00:00:09", "00:00:10") != frame_text(after)


@pytest.mark.parametrize("skin", [semantic, soup])
def test_two_answers_differ_in_noise_and_not_in_the_main_text(skin: Skin) -> None:
    responder = responder_for(one_page_web(skin))
    first, second = (get(responder, HERE, 0.0).body for _ in range(2))
    assert first != second
    assert main_text(first) == main_text(second)


def test_bare_pages_have_neither_frame_nor_noise() -> None:
    responder = responder_for(one_page_web(bare, *FRAME_FORMS))
    first, second = (get(responder, HERE, at).body for at in (6.0, 60.0))
    assert first == second


def test_a_page_says_in_markup_what_its_head_says() -> None:
    site = SyntheticSite(name="site", title="T")
    head = Head(robots="noindex", canonical="/a?b&c", base="/base/", refresh="/next")
    content = story(("key",), ENGLISH, title="<Title>").content(0)
    renderer = Renderer(site, Addresses.named(["site"]))
    tree = LexborHTMLParser(renderer.page(head, UTF_8, content, Counter()).pieces[0])
    found = {
        "title": "title", 'meta[name="robots"]': "content", 'link[rel="canonical"]': "href",
        "base": "href", 'meta[http-equiv="Refresh"]': "content",
    }  # fmt: skip
    nodes = {query: tree.css_first(query) for query in found}
    values = [
        node and (node.text() if key == "title" else node.attributes[key])
        for (query, key), node in zip(found.items(), nodes.values(), strict=True)
    ]
    assert values == [
        "<Title> – T", "noindex", "http://site.localhost/a?b&c", "/base/", "0; url=/next",
    ]  # fmt: skip


def test_rendered_main_text_changes_exactly_where_the_truth_says_so() -> None:
    web = showcase()
    responder = responder_for(web)
    first, second = web.start_at, web.start_at + 3 * DAY_S
    truth = Truth(web)
    alive = truth.alive(first) & truth.alive(second)
    edited = {edit.place for edit in truth.edits_between(first, second) if not edit.is_of_frame}
    changed = set()
    for place in alive:
        texts = []
        for at in (first, second):
            answers = [get(responder, place, at) for _ in range(2)]
            body = next(answer.body for answer in answers if answer.status == 200)
            texts.append(main_text(_as_utf_8(web, place, body)))
        if texts[0] != texts[1]:
            changed.add(place)
    assert changed == {p for p in alive if truth.changed_significantly(p, first, second)}
    assert changed <= edited
    assert len(changed) > 20


def _as_utf_8(web: SyntheticWeb, place: SyntheticUrl, body: bytes) -> bytes:
    """The charsets are the zoo's own affair."""
    resource = web.sites[place.host].find(place.target)
    codec = resource.encoding.codec if isinstance(resource, LivingPage) else "utf-8"
    return body.decode(codec).removeprefix("\ufeff").encode()
