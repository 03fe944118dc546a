"""Differences without an edit of the page, and their twins that look alike and are changes."""

from collections.abc import Sequence

import pytest

from freshet.crawler.compare.detection import has_same_words
from freshet.crawler.compare.history import Layout, difference
from freshet.crawler.compare.minor import (
    Difference,
    ReplacedBlock,
    features,
    may_be_minor,
    probability,
    why_minor,
)
from freshet.crawler.reduce.blocks import BlockKind, Blocks
from freshet.crawler.reduce.sketch import sketch

#: 2026-11-29
NOW = 1_796_000_000.0
PROSE = [f"Paragraph {n} of a text that stays as it is on this page." for n in range(12)]
_PROSE, _LIST, _FOOTER, _TOC, _HEADING = 1, 2, 3, 4, 5

Row = tuple[int, BlockKind, str]


def text(rows: Sequence[Row]) -> Blocks:
    places, kinds, texts = zip(*rows, strict=True)
    return Blocks(texts, kinds, places)


def why(old: Sequence[Row], new: Sequence[Row], at: float = NOW) -> str | None:
    found = why_minor(text(old), text(new), told_of(old, new), at)
    # What the new text rules out is never minor.
    assert found is None or may_be_minor(text(new), told_of(old, new))
    return found


def told_of(old: Sequence[Row], new: Sequence[Row]) -> Difference:
    sketches = [sketch(each.texts, each.places) for each in (text(old), text(new))]
    before, after = map(Layout.of, sketches)
    found = difference(before, after)
    may_be_marks = has_same_words(*sketches)
    return Difference(before, after, found.removed, found.added, may_be_marks=may_be_marks)


def prose(*texts: str) -> list[Row]:
    return [(_PROSE, "paragraph", each) for each in texts]


def in_footer(*texts: str) -> list[Row]:
    return [*prose(*PROSE), *((_FOOTER, "text", each) for each in texts)]


def in_content(*texts: str) -> list[Row]:
    return [*prose(*PROSE[:4], *texts), *prose(*PROSE[4:])]


def listed(*texts: str) -> list[Row]:
    return [*prose(*PROSE[:3]), *((_LIST, "item", each) for each in texts), *prose(*PROSE[3:])]


# -- dates of a list ---------------------------------------------------------

#: Dates of a list, and the same ones a day later or some hours.
DATES = {
    "iso": (["2021-11-24", "2021-12-30", "2022-02-28"], ["2021-11-25", "2021-12-31", "2022-03-01"]),
    "figures": (["24/11/2021", "30/12/2021", "28/02/2022"],
                ["25/11/2021", "31/12/2021", "01/03/2022"]),
    "figures, month first": (["11/24/2021", "12/30/2021", "02/28/2022"],
                             ["11/25/2021", "12/31/2021", "03/01/2022"]),
    "points": (["24.11.2021", "30.12.2021", "28.02.2022"],
               ["25.11.2021", "31.12.2021", "01.03.2022"]),
    "English": (["Published on November 24, 2021", "December 30, 2021", "Feb 28, 2022"],
                ["Published on November 25, 2021", "December 31, 2021", "Mar 1, 2022"]),
    "French": (["24 nov. 2021", "30 déc. 2021", "28 févr. 2022"],
               ["25 nov. 2021", "31 déc. 2021", "1 mars 2022"]),
    "German": (["24. November 2021", "30. Dezember 2021", "28. Februar 2022"],
               ["25. November 2021", "31. Dezember 2021", "1. März 2022"]),
    "Spanish": (["24 de noviembre de 2021", "30 de diciembre de 2021", "28 de febrero de 2022"],
                ["25 de noviembre de 2021", "31 de diciembre de 2021", "1 de marzo de 2022"]),
    "Chinese": (["2021年11月24日", "2021年12月30日", "2022年2月28日"],
                ["2021年11月25日", "2021年12月31日", "2022年3月1日"]),
    "weekdays": (["Wednesday, 24 November 2021", "Thursday, 30 December 2021",
                  "Monday, 28 February 2022"],
                 ["Thursday, 25 November 2021", "Friday, 31 December 2021",
                  "Tuesday, 1 March 2022"]),
    "hours": (["24 Nov 2021 18:30", "30 Dec 2021 20:30", "28 Feb 2022 22:30"],
              ["24 Nov 2021 23:30", "31 Dec 2021 01:30", "1 Mar 2022 03:30"]),
    "half days": (["24 Nov 2021, 6:30 pm", "30 Dec 2021, 8:30 PM", "28 Feb 2022, 10:30 pm"],
                  ["24 Nov 2021, 5:30 pm", "30 Dec 2021, 7:30 PM", "28 Feb 2022, 9:30 pm"]),
    "backwards": (["2021-11-25", "2021-12-31", "2022-03-01"],
                  ["2021-11-24", "2021-12-30", "2022-02-28"]),
    "one that overlaps the next": (["2021-11-24", "2021-11-25", "2021-11-26", "2021-11-27"],
                                   ["2021-11-25", "2021-11-26", "2021-11-27", "2021-11-28"]),
    "many to come": ([f"2027-01-{n:02} {n}" for n in range(1, 25)],
                     [f"2027-01-{n + 1:02} {n}" for n in range(1, 25)]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), DATES.values(), ids=DATES)
def test_dates_of_a_list_that_all_moved_alike_are_minor(old: list[str], new: list[str]) -> None:
    told = "all dates of a list moved by the same time"
    assert why(listed(*old), listed(*new)) == told
    assert why(listed(*new), listed(*old)) == told


MOVED = {
    "one of them": (["2021-11-24", "2021-12-30", "2022-02-28"],
                    ["2021-11-25", "2021-12-30", "2022-02-28"]),
    "all but one": (["2021-11-24", "2021-12-30", "2022-02-28", "2022-03-05"],
                    ["2021-11-25", "2021-12-31", "2022-03-01", "2022-03-05"]),
    "by other times": (["2021-11-24", "2021-12-30", "2022-02-27"],
                       ["2021-11-25", "2021-12-31", "2022-03-01"]),
    "by a week": (["2021-11-24", "2021-12-20", "2022-02-20"],
                  ["2021-12-01", "2021-12-27", "2022-02-27"]),
    "by minutes": (["24 Nov 2021 18:30", "30 Dec 2021 20:30", "28 Feb 2022 22:30"],
                   ["24 Nov 2021 18:35", "30 Dec 2021 20:35", "28 Feb 2022 22:35"]),
    "a lone one": (["2021-11-24"], ["2021-11-25"]),
    "two": (["2021-11-24", "2021-12-30"], ["2021-11-25", "2021-12-31"]),
    "lectures to come": ([f"2027-0{n}-04 Lecture" for n in range(1, 9)],
                         [f"2027-0{n}-05 Lecture" for n in range(1, 9)]),
    "opening hours": ([f"{day}: 9:00-17:00" for day in ("Monday", "Tuesday", "Friday")],
                      [f"{day}: 10:00-18:00" for day in ("Monday", "Tuesday", "Friday")]),
    "with another word": (["2021-11-24 open", "2021-12-30 open", "2022-02-28 open"],
                          ["2021-11-25 open", "2021-12-31 open", "2022-03-01 shut"]),
    "with another number": (["2021-11-24 12 €", "2021-12-30 12 €", "2022-02-28 12 €"],
                            ["2021-11-25 12 €", "2021-12-31 12 €", "2022-03-01 13 €"]),
    "one more": (["2021-11-24", "2021-12-30", "2022-02-28"],
                 ["2021-11-25", "2021-12-31", "2022-03-01", "2022-03-02"]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), MOVED.values(), ids=MOVED)
def test_dates_that_moved_otherwise_are_a_change(old: list[str], new: list[str]) -> None:
    assert why(listed(*old), listed(*new)) is None


# -- one block ---------------------------------------------------------------

MINOR = {
    "Version 1.266.0.349": "Version 1.267.0.351",
    "v2.3.1": "v2.3.2",
    "MyApp v2.3.1": "MyApp v2.4.0",
    "Version: 3.14": "Version: 3.15",
    "Build 20231": "Build 20245",
    "Portal version 4.2.0-rc.1": "Portal version 4.2.0",
    "Version 2.0.1 (build 77)": "Version 2.0.1 (build 78)",
    "ver. 10.0.3": "ver. 10.0.4",
    "Rev. 1.20.33": "Rev. 1.20.34",
    "© Example Inc. Version 5.5.1": "© Example Inc. Version 5.5.2",
    "Versión 1.2.3": "Versión 1.2.4",
}


@pytest.mark.parametrize(("old", "new"), MINOR.items())
def test_the_version_of_the_software_at_the_end_of_a_page_is_minor(old: str, new: str) -> None:
    assert why(in_footer("Imprint", old), in_footer("Imprint", new))
    assert why(in_content(old), in_content(new)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Download version 2.3.1", "Download version 2.3.2"),
        ("Latest version: 2.3.1", "Latest version: 2.3.2"),
        ("New: version 2.3.1", "New: version 2.3.2"),
        ("Version 2.3.1 ends the support of old printers", "Version 2.3.2 ends the support of it"),
        ("Requires version 2.3.1", "Requires version 2.3.2"),
        ("Version 2.3.1, 14 MB", "Version 2.3.2, 14 MB"),
        ("MyApp v2.3.1", "YourApp v2.3.1"),
        ("Version 2.3.1", "Version 2.3.1 beta test is open"),
        ("Phone 555.123.4567", "Phone 555.123.4568"),
        ("Room 1.266", "Room 1.267"),
        ("Section 1.2.3", "Section 1.2.4"),
        ("Price 1.266.00", "Price 1.267.00"),
    ],
)
def test_other_numbers_at_the_end_of_a_page_are_a_change(old: str, new: str) -> None:
    assert why(in_footer("Imprint", old), in_footer("Imprint", new)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We’re here", "We're here"),
        ("He said “no” to it", 'He said "no" to it'),
        ("A – b", "A - b"),
        ("User Content :We may collect", "User Content: We may collect"),
        ("Terms(collectively, the terms)", "Terms(collectively,the terms)"),
        ("And so on…", "And so on..."),
        ("GENERAL RESTRICTIONS.", "GENERAL RESTRICTIONS"),
        ("„Ja“, sagte sie", '"Ja", sagte sie'),
        ("« Oui », dit-il", '"Oui", dit-il'),
        ("The ( old ) house", "The (old) house"),
        ("L’eau, l’air", "L'eau, l'air"),
        ("Pages 5–6", "Pages 5-6"),
    ],
)
def test_typography_is_minor(old: str, new: str) -> None:
    assert why(in_content(old), in_content(new)) == "only quotation marks, dashes or spaces differ"
    assert why(in_content(new), in_content(old))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print(‘a’)", "print('a')"),
        ("if (a == “b”) { c }", 'if (a == "b") { c }'),
        ("Vectors 1, 2", "Vectors 1,2"),
        ("It costs 1.000 euros", "It costs 1,000 euros"),
        ("Is it?", "Is it."),
        ("We cannot come", "We can not come"),
        ("Lets eat", "Let's eat"),
        ("It is −5 °C", "It is 5 °C"),
        ("Resign", "Re-sign"),
        ("A therapist", "A the rapist"),
        ("US", "us"),
        ("He said “no”", "He said no"),
    ],
)
def test_signs_that_mean_something_are_a_change(old: str, new: str) -> None:
    assert why(in_content(old), in_content(new)) is None
    assert why(in_content(new), in_content(old)) is None


@pytest.mark.parametrize(
    "note",
    [
        " (opens in new tab)", " (opens in a new window)", " (Opens in new window or tab)",
        " [external link]", " (link opens in a new tab)", " (new window)", ", opens in a new tab",
        " (s'ouvre dans un nouvel onglet)", " (öffnet in neuem Tab)",
        " (wird in neuem Fenster geöffnet)",
        " (se abre en una nueva ventana)", " (apre in una nuova finestra)", " (abre em nova aba)",
        " (opent in nieuw tabblad)", " (öppnas i nytt fönster)", " opens in new tab",
    ],
)  # fmt: skip
def test_a_note_on_where_a_link_opens_is_minor(note: str) -> None:
    line = "Read the policy of the city"
    assert why(in_content(line), in_content(line + note))
    assert why(in_content(line + note), in_content(line))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Read the policy", "Read the policy in a new way"),
        ("The report", "The report opens in a new tab when it is ready"),
        ("The office", "The office (opens in May)"),
        ("The shop", "The shop (opens at 10)"),
        ("The shop", "The shop (new address)"),
        ("Windows", "Windows (new)"),
        ("The show (opens in new theatre)", "The show"),
        ("The policy (opens in new tab)", "The rules"),
        ("External links", "Links"),
        ("Contact", "Contact (external office)"),
    ],
)
def test_other_words_in_brackets_are_a_change(old: str, new: str) -> None:
    assert why(in_content(old), in_content(new)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Number of views (4099)", "Number of views (4100)"),
        ("4,099 views", "4,101 views"),
        ("1 view", "2 views"),
        ("Views: 1.2K", "Views: 1.3K"),
        ("This page has been viewed 12 times", "This page has been viewed 14 times"),
        ("Page views: 1 202 333", "Page views: 1 202 339"),
        ("12 visitors today", "31 visitors today"),
        ("42 users online", "40 users online"),
        ("Users online: 42", "Users online: 40"),
        ("Vues : 12", "Vues : 14"),
        ("Anzahl der Aufrufe: 12", "Anzahl der Aufrufe: 13"),
        ("1.204 Besucher", "1.210 Besucher"),
        ("Número de visitas: 12", "Número de visitas: 13"),
        ("Page generated in 0.12 seconds", "Page generated in 0.33 seconds"),
        ("Current time: 10:32", "Current time: 10:35"),
        ("It is now Tuesday, 10:32 UTC", "It is now Wednesday, 11:40 UTC"),
        ("Server time 2026-11-29 10:32", "Server time 2026-11-30 08:01"),
        ("Aktuelle Uhrzeit: 10:32", "Aktuelle Uhrzeit: 10:35"),
    ],
)
def test_counts_of_visits_and_clocks_are_minor(old: str, new: str) -> None:
    assert why(in_content(old), in_content(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("12 reviews", "13 reviews"),
        ("Interviews (12)", "Interviews (13)"),
        ("3 rooms with views", "4 rooms with views"),
        ("Members: 120", "Members: 121"),
        ("Price: 12", "Price: 13"),
        ("In stock: 4", "In stock: 3"),
        ("Deaths: 120", "Deaths: 122"),
        ("Downloads last month: 12", "Downloads last month: 13"),
        ("Read 12 books", "Read 13 books"),
        ("4 visits to the doctor are free", "5 visits to the doctor are free"),
        ("Opens at 10:30", "Opens at 11:30"),
        ("10:30", "11:30"),
        ("Time limit: 10:30", "Time limit: 11:30"),
        ("12 views", "12 visitors"),
    ],
)
def test_other_counts_and_times_are_a_change(old: str, new: str) -> None:
    assert why(in_content(old), in_content(new)) is None


ENTRIES = ["What we collect", "How we use it", "Whom we tell", "How long we keep it"]
BODY: list[Row] = [
    row for entry in ENTRIES for row in ((_HEADING, "heading", entry), *prose(f"{entry}: this."))
]


@pytest.mark.parametrize("many", [3, 4])
def test_a_table_of_contents_that_comes_or_goes_is_minor(many: int) -> None:
    toc: list[Row] = [(_TOC, "item", entry) for entry in ENTRIES[:many]]
    assert why([*toc, *BODY], BODY) == "only entries of a table of contents differ"
    assert why(BODY, [*toc, *BODY])


@pytest.mark.parametrize(
    "title", ["Contents", "TABLE OF CONTENTS", "On this page:", "Sommaire", "Inhaltsverzeichnis"]
)
def test_a_table_of_contents_may_have_a_title_and_numbers(title: str) -> None:
    entries = [f"{n}. {entry.lower()}" for n, entry in enumerate(ENTRIES, start=1)]
    toc: list[Row] = [(_TOC, "item", entry) for entry in [title, *entries]]
    assert why([*toc, *BODY], BODY) == "only entries of a table of contents differ"
    assert why(BODY, [*toc, *BODY])
    # The title alone says that there is more to read.
    assert why(BODY, [toc[0], *BODY]) is None


@pytest.mark.parametrize(
    "new",
    [
        BODY[2:], BODY[:-2], [*BODY[:1], *BODY[2:]], [*BODY, (_TOC, "item", ENTRIES[0])],
        [(_TOC, "item", "A new thing"), *((_TOC, "item", each) for each in ENTRIES), *BODY],
        [(_TOC, "item", each) for each in ENTRIES],
    ],
    ids=["a section", "the last section", "a paragraph", "one entry", "a new entry", "the text"],
)  # fmt: skip
def test_what_is_no_table_of_contents_is_a_change(new: list[Row]) -> None:
    assert why(BODY, new) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("Number of views (4099)", "Number of views (4100)"), ("Version 1.2.3", "Version 1.2.4"),
     ("Current time: 10:32", "Current time: 10:35"), ("12 users online", "14 users online")],
)  # fmt: skip
def test_a_number_that_is_the_whole_text_is_its_content(old: str, new: str) -> None:
    assert why(prose(old), prose(new)) is None
    assert why(prose("Total", old), prose("Total", new))


# -- changes -----------------------------------------------------------------

EDITS = {
    "a word": ("The fee is due on Monday.", "The fee is due on Friday."),
    "a price": ("Price: 10.99 €", "Price: 11.99 €"),
    "a number": ("Seats left: 4", "Seats left: 3"),
    "a date": ("Updated: June 4, 2024", "Updated: June 5, 2024"),
    "an effective date": ("Effective: 2024-06-04", "Effective: 2024-06-05"),
    "a name": ("Director: Anna Berg", "Director: Anna Burg"),
    "an e-mail address": ("Contact: legal@x.example", "Contact: law@x.example"),
    "a phone number": ("Tel. +49 30 1234567", "Tel. +49 30 1234568"),
    "a negation": ("You may not copy it.", "You may copy it."),
    "a clause": ("You may copy it.", "You may copy it, but not sell it."),
    "a share": ("A tax of 19 %", "A tax of 20 %"),
    "a unit": ("Take 5 mg", "Take 5 g"),
    "a state": ("In stock", "Sold out"),
    "a link's text": ("View this Dataset", "View this Report"),
}


@pytest.mark.parametrize(("old", "new"), EDITS.values(), ids=EDITS)
def test_one_word_that_differs_alone_is_a_change(old: str, new: str) -> None:
    for page in (in_content, in_footer):
        assert why(page(old), page(new)) is None
        assert why(page(new), page(old)) is None
        assert why(page(old), page()) is None
        assert why(page(), page(old)) is None


@pytest.mark.parametrize(("old", "new"), EDITS.values(), ids=EDITS)
def test_a_change_beside_a_minor_difference_is_a_change(old: str, new: str) -> None:
    before, after = (
        in_content(old, "We’re here", "Views: 5"),
        in_content(new, "We're here", "Views: 6"),
    )
    assert why(before, after) is None
    assert why(in_content("We’re here", "Views: 5"), in_content("We're here", "Views: 6"))


def test_a_price_in_the_frame_of_a_small_host_is_a_change() -> None:
    pairs = ("Nix (Beta)", "Nix"), ("Call +49 30 1234567", "Call +49 30 1234568")
    found = [features(ReplacedBlock(*pair, is_frame=True, is_last=True)) for pair in pairs]
    chances = [0.0 if each is None else probability(each) for each in found]
    assert chances[0] < 0.5 < chances[1]


def test_a_text_that_is_not_the_last_one_explains_nothing() -> None:
    old, new = in_content("We’re here"), in_content("We're here")
    told = told_of(old, new)
    assert why_minor(text(old), text(new), told, NOW)
    assert why_minor(text(in_content("We were")), text(new), told, NOW) is None
    assert why_minor(text(old[1:]), text(new), told, NOW) is None


RULED_OUT = {
    "a paragraph more": (prose(*PROSE), prose(*PROSE, "A sentence that is new.")),
    "a paragraph less": (prose(*PROSE), prose(*PROSE[1:])),
    "two of one": (prose(*PROSE), prose("One.", "Another.", *PROSE[1:])),
    "one of two": (prose(*PROSE), prose("One.", *PROSE[2:])),
    "an item more": (listed("a", "b", "c"), listed("a", "b", "c", "d")),
    "an item less": (listed("a", "b", "c"), listed("a", "b")),
    "a line more in the footer": (in_footer("Imprint"), in_footer("Imprint", "Version 2")),
    "a line less in the footer": (in_footer("Imprint", "Version 2"), in_footer("Imprint")),
    "many": (prose(*(f"a {n}" for n in range(300))), prose(*(f"b {n}" for n in range(300)))),
    "a count that comes": (in_content(), in_content("Viewed 7 times")),
    "a word in a sentence": (
        prose(*PROSE, f"{PROSE[0]} We’re here."), prose(*PROSE, f"{PROSE[0]} We're there.")
    ),
    "a number": (in_content("Room 5 of the annex"), in_content("Room 6 of the annex")),
}  # fmt: skip


@pytest.mark.parametrize("kind", RULED_OUT)
def test_what_came_or_went_alone_is_ruled_out_without_the_old_text(kind: str) -> None:
    old, new = RULED_OUT[kind]
    assert not may_be_minor(text(new), told_of(old, new))
    assert why_minor(text(old), text(new), told_of(old, new), NOW) is None
