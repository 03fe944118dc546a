"""What belongs to the frame of a page: names, roles and stamps."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.boilerplate import (
    Verdicts,
    is_control,
    is_frame_name,
    is_frame_role,
    is_hidden,
    is_stamp,
)


@pytest.mark.parametrize(
    "name",
    "site-footer nav-link navLink sidebar-left main-nav ad ad-slot adBanner topAd NAVBAR share"
    " breadcrumbs cookie-consent cookie_notice post-navigation social_links related-posts"
    " toc comment-respond footer2 blog-newsletter-cta ArticleShare_related__x1 md-websites-modal"
    " elementor-author-bio".split(),
)
def test_ids_and_classes_made_of_frame_words_name_a_part_of_the_frame(name: str) -> None:
    assert is_frame_name(name, None)
    assert is_frame_name(None, f"col-sm-3 {name} wide")


@pytest.mark.parametrize(
    "name",
    "thread-header-title header main-content add address adobe download footnote navy shared"
    " share-price has-sidebar article-header menu menu-item content col-sm-3 gadget"
    " category-newsletter tag-cookie-law no-footer 2024".split(),
)
def test_other_words_do_not_however_much_they_look_alike(name: str) -> None:
    assert not is_frame_name(name, name)


def test_frames_are_told_by_attributes() -> None:
    assert not is_frame_name(None, None)
    assert not is_frame_name("", " ")
    assert is_hidden({"hidden": None})
    assert is_hidden({"aria-hidden": "true"})
    assert not is_hidden({"aria-hidden": "false"})
    assert not is_hidden({"hidden": "", "class": "faq__answer"})
    for shown in ("until-found", " Until-Found "):
        assert not is_hidden({"hidden": shown, "class": "box"})
    for opened in ("tab-pane fade", "tabs__content", "my-tab", "TabPanel", "spoiler-text"):
        assert not is_hidden({"hidden": "", "class": opened})
    for other in ("table-row", "stable", "tabular", "box"):
        assert is_hidden({"hidden": "", "class": other})
    assert is_frame_role({"role": "Navigation"})
    assert not is_frame_role({"role": "main"})
    assert not is_frame_role({"role": None})


@pytest.mark.parametrize(
    "block",
    ["Generated 2026-11-21 10:22:01 in 0.03 s",
     "Generated on Mon Nov 21 2026 10:00:00 for Ada by doxygen 1.9.8",
     "Last built on Sat, 21 Nov 2026 10:22:01 GMT", "Last updated: 2026-11-21",
     "Last modified on November 21, 2026",
     "This page was last edited on 21 November 2026, at 10:22",
     "This page was generated at 2026-11-21T10:22:01Z", "Page rendered at 10:22:01",
     "Page generated in 0.035 seconds", "Updated 3 minutes ago", "Updated: Nov 21, 2026",
     "Built 2026-11-21 10:22:01", "Served by node 7", "Server: web-03", "Build abc123",
     "Request ID: 7f3a-22b1-aa", "Session token: 4f9a8c7d", "Visitors today: 1,234",
     "You are visitor number 12345", "1,234 views", "42 users online",
     "12 queries in 0.034 seconds", "Current time: 10:22:01", "It is now 10:22",
     "Today is Saturday, 21 November 2026", "© 2019-2026 Example Ltd",
     "Copyright © 2026 Foo. All rights reserved.", "Updated over a week ago",
     "about 3 hours ago", "almost a year ago", "Yesterday", "Yesterday at 10:22", "Just now",
     "Posted by Ada 3 hours ago", "Published last week", "Updated this week",
     "Updated in the last hour", "5d ago", "3 days ago by Ada",
     "Last activity: a few minutes ago", "Vor 3 Stunden", "il y a un an", "hace 2 días",
     "3 hrs. ago", "4 days, 3 hours ago", "Last login: 3 days ago", "Asked 3 years, 4 months ago",
     "vor 2 Wochen aktualisiert", "Zuletzt aktualisiert vor 3 Tagen", "Mis à jour il y a 3 jours",
     "Actualizado hace 2 semanas", "2 giorni fa", "2 dagen geleden", "3 dagar sedan"],
)  # fmt: skip
def test_a_stamp_changes_although_nobody_edited_the_page(block: str) -> None:
    assert is_stamp(block)
    assert is_stamp(block.upper())


@pytest.mark.parametrize(
    "block",
    ["Price: 12.50 EUR", "Concert: 3 May 2027", "3 May 2027", "Published 21 Nov 2026",
     "Posted on 21 November 2026 by Ann", "Updated 3 May: soup now costs 4 EUR",
     "Today 10:30 Concert in the park", "Now open until 10:30", "It is time to vote on 3 May",
     "Built in 1932", "Built on 3 May 1932", "Created in 1998 by John",
     "The site was built in 1932", "Generated 4.5 MW in 2026", "Served with rice in 20 minutes",
     "Session 3", "Node 18", "Build a house", "Version 2.3.0", "Current version 3.2",
     "Last year we sold 2026 cars", "12 users have signed", "Total: 1234",
     "The war ended 80 years ago", "3 days ago the bridge fell", "Yesterday we sang",
     "Last week", "Today", "Added salt, today more than ever", "Vor dem Haus", "Published 2026",
     "Views of the sea from 12 rooms", "Request for comments 9110", "Er fiel vor 80 Jahren", ""],
)  # fmt: skip
def test_prices_dates_of_events_and_sentences_are_content(block: str) -> None:
    assert not is_stamp(block)


def test_a_long_block_is_never_a_stamp() -> None:
    assert not is_stamp("Last updated 2026-11-21: " + "what we changed is told here " * 3)
    assert not is_stamp("Generated 2026-11-21 " + "x" * 200)


@pytest.mark.parametrize(
    "block",
    (
        "Read more|Get a free quote|Sign in or join|→ Subscribe!|12 comments|5 min read"
        "|Related stories:|You may also like|Customers also bought|Article continues below"
        "|Add Wawona 6 Tent to Compare|Was this page helpful?|Notify me"
        "|Toggle the table of contents|Send feedback"
    ).split("|"),
)  # fmt: skip
def test_a_button_or_label_is_a_control(block: str) -> None:
    assert is_control(block)


@pytest.mark.parametrize(
    "block",
    (
        "Out of stock|12.50 EUR|Download 1.2.3|Order confirmed|Share capital|Next steps"
        "|Add salt to taste|Related work|You may cancel at any time"
        "|Open the sidebar from a script|Popular science|"
    ).split("|"),
)  # fmt: skip
def test_states_prices_versions_and_headings_are_content(block: str) -> None:
    assert not is_control(block)


@given(st.text(max_size=200))
def test_any_short_text_is_judged_without_error(block: str) -> None:
    is_stamp(block)
    is_frame_name(block, block)


@pytest.mark.parametrize(
    "start", ["last updated ", "posted by ", "generated ", "© ", "12 queries ", "request "]
)
@pytest.mark.parametrize("unit", ["1", "1:", "a", ", ", "id-", "Jan 1", "a few "])
def test_no_block_makes_the_pattern_backtrack_without_end(start: str, unit: str) -> None:
    is_stamp(start + unit * 100)
    is_control(start + unit * 60)


@pytest.mark.parametrize("text", ["w{}", "some words of a block {}", "long " * 60 + "{}"])
def test_verdicts_on_texts_of_any_length_take_bounded_memory(text: str) -> None:
    verdicts, most = Verdicts(lambda texts: [True] * len(texts)), 0
    for n in range(0, 150_000, 1_000):
        verdicts.of([text.format(n + more) for more in range(1_000)])
        known = verdicts._known
        most = max(most, sys.getsizeof(known) + sum(map(sys.getsizeof, known)))
    assert 1 << 20 < most < 5 << 20
