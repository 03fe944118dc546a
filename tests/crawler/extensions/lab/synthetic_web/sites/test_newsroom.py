from collections import Counter

import pytest

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.site import Addresses, LivingPage
from freshet.crawler.extensions.lab.synthetic_web.sites import manifest_bytes, newsroom
from freshet.crawler.extensions.lab.synthetic_web.web import START_AT, WebSpec
from scripts.synthetic_truth import Truth

SPEC = WebSpec(span_days=20)
SITE = newsroom(SPEC.plot("courier"), 40)
LISTS = ["/", "/world/", "/sport/", "/culture/", "/science/"]
ITEMS = {target: page for target, page in SITE.documents() if "item" in target}
NOON = START_AT + 10.5 * DAY_S


def shown(target: str, at: float) -> list[str]:
    document = SITE.resources[target]
    assert isinstance(document, LivingPage)
    return [link.leads_to.target for link in document.content_at(at).links if link.leads_to]


def test_items_come_at_the_rate_asked_for_by_day_more_than_by_night() -> None:
    births = [page.born_at for page in ITEMS.values() if page.born_at > START_AT]
    assert len(births) == pytest.approx(40 * 20, rel=0.1)
    quarters = Counter(int((at % DAY_S + DAY_S / 8) // (DAY_S / 4)) % 4 for at in births)
    # The mean of 0.8 cos over a quarter about its top: 0.8 sin(π/4) / (π/4) = 0.72.
    midnight, noon = quarters[0] / len(births), quarters[2] / len(births)
    assert midnight == pytest.approx((1 - 0.72) / 4, rel=0.25)
    assert noon == pytest.approx((1 + 0.72) / 4, rel=0.1)


def test_lists_show_the_newest_and_some_items_stand_on_two() -> None:
    on_front = shown("/", NOON)
    newest = sorted(
        (target for target, page in ITEMS.items() if page.is_alive(NOON)),
        key=lambda target: -ITEMS[target].born_at,
    )
    assert len(on_front) == 15
    assert on_front == [target for target in newest if target in set(on_front)]
    for name in LISTS[1:]:
        assert shown(name, NOON) == [target for target in newest if target.startswith(name)][:12]
    on_sections = {target for name in LISTS[1:] for target in shown(name, NOON)}
    assert 0 < len(on_sections - set(on_front)) < len(on_sections)
    assert set(on_front) & on_sections


def test_an_old_item_answers_but_no_page_feed_or_sitemap_leads_there() -> None:
    web = SPEC.web([SITE])
    old = min(ITEMS, key=lambda target: ITEMS[target].born_at)
    assert SyntheticUrl("courier", old) in Truth(web).alive(NOON)
    assert SyntheticUrl("courier", old) not in web.crawlable(NOON)
    assert not any(r == "sitemap index" for r in SITE.resources.values())
    feed = manifest_bytes(SITE, "atom", NOON, Addresses.named(["courier"])).decode()
    assert feed.count("<entry>") == 15
    assert old not in feed


def test_every_item_stands_on_a_list_when_it_is_born() -> None:
    for target, page in ITEMS.items():
        if page.born_at > START_AT:
            section = f"/{target.split('/')[1]}/"
            assert target in shown(section, page.born_at)


def test_lists_are_full_at_the_start() -> None:
    assert [len(shown(name, START_AT)) for name in LISTS[:3]] == [15, 12, 12]
