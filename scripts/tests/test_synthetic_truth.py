from freshet.crawler.extensions.lab.synthetic_web.content import (
    DAY_S,
    ENGLISH,
    Link,
    Revision,
    SyntheticUrl,
)
from freshet.crawler.extensions.lab.synthetic_web.site import (
    Frame,
    LivingPage,
    SyntheticSite,
    link_list,
    story,
)
from freshet.crawler.extensions.lab.synthetic_web.web import (
    PageLifetime,
    SyntheticWeb,
    WebSpec,
    mixed,
)
from scripts.synthetic_truth import Edit, Truth

WORDS = tuple(Revision(at, "word") for at in (10.0, 20.0, 30.0))
PAGE = SyntheticUrl("site", "/page")
MOVED = SyntheticUrl("site", "/moved")


def web() -> SyntheticWeb:
    prose = story(("key",), ENGLISH, WORDS)
    resources = {
        "/page": LivingPage(history=prose, born_at=5.0, died_at=25.0, moved_to="/moved"),
        "/moved": LivingPage(history=prose, born_at=25.0, died_at=40.0),
    }
    frame = Frame(revisions=(Revision(1.0, "advert"), Revision(15.0, "footer")))
    site = SyntheticSite(name="site", title="", resources=resources, frame=frame)
    return SyntheticWeb(1, {"site": site}, 0.0, 100.0)


def truth() -> Truth:
    return Truth(web())


def test_edits_are_those_of_living_pages_in_order_of_time() -> None:
    assert truth().edits_between(0.0, 100.0) == [
        Edit(PAGE, 10.0, "word"), Edit(PAGE, 15.0, "footer"), Edit(PAGE, 20.0, "word"),
        Edit(MOVED, 30.0, "word"),
    ]  # fmt: skip


def test_intervals_are_open_at_the_start_and_closed_at_the_end() -> None:
    assert [edit.at for edit in truth().edits_between(10.0, 20.0)] == [15.0, 20.0]


def test_only_the_footer_edit_is_one_of_the_frame() -> None:
    assert sum(edit.is_of_frame for edit in truth().edits_between(0.0, 100.0)) == 1


def test_a_frame_edit_is_not_a_significant_change() -> None:
    assert truth().changed_significantly(PAGE, 9.0, 10.0)
    assert not truth().changed_significantly(PAGE, 10.0, 19.0)


def test_an_edit_that_was_undone_is_no_change_between_before_and_after() -> None:
    entry = Link("brief", SyntheticUrl("site", "/brief"), born_at=10.0, died_at=20.0)
    resources = {"/": LivingPage(history=link_list("News", [entry]), born_at=0.0)}
    site = SyntheticSite(name="site", title="", resources=resources)
    news = Truth(SyntheticWeb(1, {"site": site}, 0.0, 100.0))
    home = SyntheticUrl("site", "/")
    assert [edit.form for edit in news.edits_between(0.0, 30.0)] == ["listing"] * 2
    assert news.changed_significantly(home, 9.0, 10.0)
    assert not news.changed_significantly(home, 9.0, 20.0)


def test_alive_is_from_birth_to_just_before_death() -> None:
    assert [len(truth().alive(at)) for at in (4.0, 5.0, 25.0, 39.9, 40.0)] == [0, 1, 1, 1, 0]
    assert truth().alive(25.0) == {MOVED}


def test_main_content_is_as_old_as_its_last_edit_or_its_birth() -> None:
    assert dict(web().documents())[PAGE].changed_at(9.0) == 5.0
    assert dict(web().documents())[PAGE].changed_at(19.0) == 10.0
    assert dict(web().documents())[MOVED].changed_at(26.0) == 25.0


def test_lives_account_for_who_is_alive() -> None:
    made = mixed(WebSpec(hosts=4, pages_per_host=20))
    for days in (0, 1, 10, 50):
        at = made.start_at + days * DAY_S
        lives = {
            life.place
            for life in made.lives()
            if life.born_at <= at and (life.died_at is None or at < life.died_at)
        }
        assert Truth(made).alive(at) == lives


def test_a_life_goes_from_birth_to_death_with_the_edits_of_the_main_content_in_it() -> None:
    assert list(web().lives()) == [
        PageLifetime(PAGE, 5.0, 25.0, (10.0, 20.0)),
        PageLifetime(MOVED, 25.0, 40.0, (30.0,)),
    ]
