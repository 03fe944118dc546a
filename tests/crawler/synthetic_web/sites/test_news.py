from freshet.crawler.synthetic_web.content import DAY_S, Content, Place
from freshet.crawler.synthetic_web.site import Document
from freshet.crawler.synthetic_web.sites import news
from freshet.crawler.synthetic_web.web import START_AT, WebSpec

SITE = news(WebSpec(span_days=30).plot("news"))


def content(target: str, at: float) -> Content:
    document = SITE.resources[target]
    assert isinstance(document, Document)
    return document.content_at(at)


def articles_on(target: str, at: float) -> list[Place]:
    places = [link.leads_to for link in content(target, at).links]
    return [place for place in places if place is not None and "article" in place.target]


def test_the_front_page_shows_the_newest_ten() -> None:
    at = START_AT + 10 * DAY_S
    alive = [(d.born_at, t) for t, d in SITE.documents() if "article" in t and d.is_alive(at)]
    newest = [Place("news", target) for _, target in sorted(alive, reverse=True)[:10]]
    assert articles_on("/", at) == newest


def test_an_article_leaves_the_lists_and_stays_in_the_archive() -> None:
    at = START_AT + 25 * DAY_S
    lists = {p for target in ("/", "/?page=2", "/?page=3") for p in articles_on(target, at)}
    first = articles_on("/", START_AT)[0]
    assert len(lists) == 30
    assert first not in lists
    assert first in articles_on(f"/archive/{first.target[1:8].replace('/', '-')}", at)


def test_a_new_article_pushes_another_from_each_page_to_the_next() -> None:
    born = min(d.born_at for t, d in SITE.documents() if "article" in t and d.born_at > START_AT)
    for target in ("/", "/?page=2"):
        before, after = articles_on(target, born - 1), articles_on(target, born)
        assert before[:-1] == after[1:]


def test_a_month_is_born_with_its_first_article() -> None:
    month = SITE.resources["/archive/2026-01"]
    assert isinstance(month, Document)
    assert len(articles_on("/archive/2026-01", month.born_at)) == 1
