from freshet.crawler.extensions.lab.synthetic_web.content import (
    ENGLISH,
    ContentHistory,
    Link,
    Revision,
    SyntheticUrl,
    version_at,
)
from freshet.crawler.extensions.lab.synthetic_web.site import link_list, story

EDITS = (Revision(10.0, "word"), Revision(20.0, "rewrite"), Revision(30.0, "word"))


def link(name: str, born_at: float, died_at: float | None = None) -> Link:
    return Link(name, SyntheticUrl("site", f"/{name}"), born_at=born_at, died_at=died_at)


def titles(listing: ContentHistory, at: float) -> list[str]:
    version = version_at(listing.revisions, at)
    return [shown.text for shown in listing.content(version).links]


def test_an_edit_counts_from_its_very_second_on() -> None:
    assert [version_at(EDITS, at) for at in (9.9, 10.0, 19.0, 30.0, 99.0)] == [0, 1, 1, 3, 3]


def test_a_version_does_not_depend_on_which_were_asked_for_before() -> None:
    asked_late, asked_in_order = (story(("key",), ENGLISH, EDITS) for _ in range(2))
    last = asked_late.content(3)
    in_order = [asked_in_order.content(n) for n in range(4)]
    assert in_order[3] == last
    assert [asked_late.content(n) for n in range(4)] == in_order


def test_every_version_of_a_story_reads_differently() -> None:
    prose = story(("key",), ENGLISH, EDITS)
    assert len({prose.content(n).text for n in range(4)}) == 4


def test_stories_of_different_keys_are_different() -> None:
    assert story((1, "a"), ENGLISH).content(0) != story((2, "a"), ENGLISH).content(0)


def test_a_listing_changes_exactly_when_what_it_shows_does() -> None:
    entries = [link("new", 20.0), link("old", 10.0), link("older", 5.0)]
    front = link_list("Front", entries, count=2)
    assert [revision.at for revision in front.revisions] == [5.0, 10.0, 20.0]
    assert titles(front, 15.0) == ["old", "older"]
    assert titles(front, 20.0) == ["new", "old"]
    archive = link_list("Archive", entries[1:])
    assert [revision.at for revision in archive.revisions] == [5.0, 10.0]


def test_the_dead_leave_a_listing_and_others_move_up() -> None:
    entries = [link("a", 0.0, 10.0), link("b", 0.0), link("c", 0.0)]
    listing = link_list("List", entries, count=2)
    assert titles(listing, 9.0) == ["a", "b"]
    assert titles(listing, 10.0) == ["b", "c"]


def test_the_tail_stands_after_the_stretch_from_when_it_is_born() -> None:
    listing = link_list("List", [link("a", 0.0)], tail=[link("more", 5.0)])
    assert titles(listing, 4.0) == ["a"]
    assert titles(listing, 5.0) == ["a", "more"]
