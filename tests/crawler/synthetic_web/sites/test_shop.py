from collections import Counter

from freshet.crawler.synthetic_web.content import DAY_S, Form
from freshet.crawler.synthetic_web.site import Document
from freshet.crawler.synthetic_web.sites import shop
from freshet.crawler.synthetic_web.truth import Truth
from freshet.crawler.synthetic_web.web import START_AT, WebSpec

SITE = shop(WebSpec().plot("shop"))
TRUTH = Truth({"shop": SITE})


def links_of(target: str, at: float) -> list[str]:
    page = SITE.find(target)
    assert isinstance(page, Document)
    return [link.leads_to.target for link in page.content_at(at).links if link.leads_to]


def test_most_edits_of_products_are_new_prices() -> None:
    edits = TRUTH.edits_between(START_AT, START_AT + 60 * DAY_S)
    forms = Counter(edit.form for edit in edits if "/product" in edit.place.target)
    frame = {Form.FOOTER, Form.NAVIGATION, Form.ADVERT}
    main = sum(n for form, n in forms.items() if form not in frame)
    assert forms[Form.NUMBER] > 0.6 * main


def test_a_product_that_is_sold_out_leaves_its_category() -> None:
    death = TRUTH.deaths(START_AT, START_AT + 60 * DAY_S)[0]
    before, after = (
        {t for c in range(1, 5) for t in links_of(f"/list?category={c}", at)}
        for at in (death.at - 1, death.at)
    )
    assert before - after == {death.place.target}


def test_both_orders_of_a_category_lead_to_the_same_products() -> None:
    plain, by_name = (
        links_of(f"/list?category=1{order}", START_AT)[:-1] for order in ("", "&sort=name")
    )
    assert set(plain) == set(by_name)
    assert plain != by_name


def test_links_carry_tracking_parameters_that_do_not_matter() -> None:
    page = SITE.find("/list?category=1")
    assert isinstance(page, Document)
    link = page.content_at(START_AT).links[0]
    assert link.leads_to is not None
    assert link.href == f"{link.leads_to.target}&utm_source=list&utm_medium=web"
    assert SITE.find(link.href) is SITE.find(link.leads_to.target)
