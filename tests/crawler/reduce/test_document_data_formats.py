"""YAML, lines of JSON and calendars by their values."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.formats import MOST_VALUES
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_process import Parser

URL = "https://h.example/data"
YAML, LINES, CALENDAR = "application/yaml", "application/x-ndjson", "text/calendar"


def blocks(text: str, kind: str) -> Blocks:
    return parse(text.encode(), URL, kind).blocks


def change(old: str, new: str, kind: str) -> tuple[list[str], list[str]]:
    """Return the blocks that only one of two versions has."""
    before, after = (Counter(blocks(text, kind).texts) for text in (old, new))
    return [*(before - after)], [*(after - before)]


# -- yaml --------------------------------------------------------------------

OPENING = """# Opening hours
rates: {USD: "1.0812", JPY: 161.5}
days:
  - mon   # closed
  - {name: tue, open: yes}
text: >
  One
  line
none:
"""


@pytest.mark.parametrize(
    "kind",
    [
        YAML,
        "text/yaml",
        "text/x-yaml",
        "application/x-yaml",
        "text/vnd.yaml",
        "application/openapi+yaml",
    ],
)
def test_the_values_of_yaml_are_blocks_with_their_keys(kind: str) -> None:
    found = blocks(OPENING, kind)
    assert found.texts == (
        "days: mon",
        "name: tue",
        "open: yes",
        "none:",
        "JPY: 161.5",
        "USD: 1.0812",
        "text: One line",
    )
    assert len(set(found.places)) == 7
    assert document(OPENING.encode(), URL, kind).blocks == found.texts


@pytest.mark.parametrize(
    "other",
    [
        OPENING.replace("# Opening hours", "# Open"),
        OPENING.replace('"', "'"),
        f"---\n{OPENING}",
        OPENING.replace("  - ", "- "),
        OPENING.replace("{USD: ", "{ USD:   "),
        OPENING.replace("text: >\n  One\n  line\n", "text: |\n  One\n  line\n"),
        OPENING.replace("none:\n", "none: ''\n"),
        OPENING.replace("- mon", "- &m mon"),
        OPENING.replace("rates: ", "'rates': "),
        OPENING.replace("tue", "!!str tue"),
        "none:\n" + OPENING.replace("none:\n", ""),
        OPENING + "...\n",
        f"%YAML 1.2\n---\n{OPENING}",
    ],
)
def test_what_means_nothing_in_yaml_is_no_difference(other: str) -> None:
    assert blocks(other, YAML) == blocks(OPENING, YAML)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a: 1", "a: 2", (["a: 1"], ["a: 2"])),
        ("a: 1.50", "a: 1.5", (["a: 1.50"], ["a: 1.5"])),
        ("- 1\n- 2", "- 1", ([": 2"], [])),
        ("a: yes", "a: no", (["a: yes"], ["a: no"])),
        ("a: {b: {c: 1}}", "a: {b: {c: 2}}", (["c: 1"], ["c: 2"])),
        ("a: &x 1\nb: *x", "a: &x 2\nb: *x", (["a: 1", "b: 1"], ["a: 2", "b: 2"])),
        ("x: &x {a: 1}\ny: *x", "x: &x {a: 2}\ny: *x", (["a: 1"], ["a: 2"])),
        ("a: 1\n---\na: 2", "a: 1\n---\na: 3", (["a: 2"], ["a: 3"])),
        ("a: 2026-01-01", "a: 2026-01-02", (["a: 2026-01-01"], ["a: 2026-01-02"])),
        ("a: !!python/object:os.system x", "a: !!python/object:os.system y", (["a: x"], ["a: y"])),
        ("? [a, b]\n: 1", "? [a, b]\n: 2", (["['a', 'b']: 1"], ["['a', 'b']: 2"])),
    ],
)
def test_a_changed_value_of_yaml_is_a_change_with_its_key(
    old: str, new: str, said: tuple[list[str], list[str]]
) -> None:
    assert change(old, new, YAML) == said


def test_what_is_no_yaml_is_lines() -> None:
    assert blocks("a: [1\nb: }", YAML).texts == ("a: [1", "b: }")
    assert blocks("only a sentence\nof two lines", YAML).texts == (
        "only a sentence",
        "of two lines",
    )


BOMB = "a: &a [x, x]\n" + "".join(
    f"{x}: &{x} [{', '.join([f'*{y}'] * 9)}]\n" for x, y in zip("bcdefghi", "abcdefgh", strict=True)
)


async def test_hostile_yaml_neither_grows_nor_ends_the_crawl() -> None:
    assert len(blocks(BOMB, YAML)) == 2 + 8 * 9
    parser = Parser()
    deep, long = b"[" * 100_000, b"- {a: [1, 2]}\n" * 100_000
    for body in (deep, b"{a: " * 50_000, long, b"&a *a", b"- &a [*a]\n" * 30_000, b"? " * 50_000):
        found = await parser.parse(body, URL, YAML)
        assert isinstance(found, ParsedPage)
        assert sum(map(len, found.blocks.texts)) <= 2 * len(body)
    await parser.close()


# -- lines of json -----------------------------------------------------------

RECORDS = '{"id": 1, "name": "A"}\n{"id": 2, "name": "B"}\n'


@pytest.mark.parametrize(
    "kind",
    [
        LINES,
        "application/ndjson",
        "application/jsonl",
        "text/x-ndjson",
        "text/jsonl",
        "application/x-jsonlines",
        "application/json-lines",
        "application/json-seq",
    ],
)
def test_the_values_of_each_line_are_blocks(kind: str) -> None:
    assert blocks(RECORDS, kind).texts == ("id: 1", "name: A", "id: 2", "name: B")
    assert document(RECORDS.encode(), URL, kind).blocks == blocks(RECORDS, kind).texts


@pytest.mark.parametrize(
    "other",
    [
        RECORDS.replace("\n", "\r\n"),
        RECORDS.replace("\n", "\n\n"),
        RECORDS.strip(),
        RECORDS.replace(": ", ":"),
        "\x1e" + RECORDS.replace("\n{", "\n\x1e{"),
        f"\n{RECORDS}",
        '{"name": "A", "id": 1}\n{"name": "B", "id": 2}',
        RECORDS.replace("A", "\\u0041"),
        RECORDS.replace("{", "  {"),
        RECORDS.replace("}", "}  "),
        "\ufeff" + RECORDS,
    ],
)
def test_what_means_nothing_in_lines_of_json_is_no_difference(other: str) -> None:
    assert blocks(other, LINES) == blocks(RECORDS, LINES)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{"a": 1}', '{"a": 2}', (["a: 1"], ["a: 2"])),
        ('{"a": 1}', '{"b": 1}', (["a: 1"], ["b: 1"])),
        ('{"a": {"b": 1}}', '{"a": {"b": 2}}', (["b: 1"], ["b: 2"])),
        ('{"a": [1]}', '{"a": [1, 2]}', ([], ["a: 2"])),
        ("{}\n{broken", '{"a": 1}\n{broken', ([], ["a: 1"])),
        (RECORDS, f'{RECORDS}{{"id": 3}}', ([], ["id: 3"])),
        ('{"a": null}', "{}\n[]", (["a: null"], ["{}", "[]"])),
        ('{"a": true}', '{"a": false}', (["a: true"], ["a: false"])),
        ("[1]\n[2]", "[1]\n[3]", ([": 2"], [": 3"])),
        ('{"a": "x"}\n{"a": "x"}', '{"a": "x"}', (["a: x"], [])),
        ('{"a": 1}\n{b', '{"a": 1}\n{c', ([": {b"], [": {c"])),
    ],
    ids=range(11),
)
def test_a_changed_value_of_a_line_is_a_change_with_its_key(
    old: str, new: str, said: tuple[list[str], list[str]]
) -> None:
    assert change(old, new, LINES) == said


def test_lines_that_are_no_json_or_too_many_are_lines() -> None:
    assert blocks("one line\nanother", LINES).texts == ("one line", "another")
    line = '{"a": 1, "b": 2}'
    found = blocks(f"{line}\n" * (MOST_VALUES // 2 + 1), LINES)
    assert found.texts == (line,) * (MOST_VALUES // 2 + 1)
    assert len(blocks("[" * 200_000 + "\n{}", LINES)) >= 1


# -- calendars ---------------------------------------------------------------

EVENTS = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//A tool//1//EN
BEGIN:VEVENT
DTSTAMP:20261129T010000Z
UID:1@h.example
DTSTART;TZID="Europe/Berlin":20261201T100000
SUMMARY:Meeting\\, with a very long
  name
DESCRIPTION:Line\\none
SEQUENCE:0
LAST-MODIFIED:20261101T000000Z
BEGIN:VALARM
TRIGGER:-PT5M
END:VALARM
END:VEVENT
BEGIN:VEVENT
SUMMARY:Party
UID:2@h.example
END:VEVENT
END:VCALENDAR
"""


@pytest.mark.parametrize("kind", [CALENDAR, "text/calendar; charset=utf-8", "application/ics"])
def test_the_properties_of_a_calendar_are_blocks_in_their_event(kind: str) -> None:
    found = blocks(EVENTS, kind)
    assert found.texts == (
        "VERSION: 2.0",
        "UID: 1@h.example",
        'DTSTART;TZID="Europe/Berlin": 20261201T100000',
        "SUMMARY: Meeting, with a very long name",
        "DESCRIPTION: Line one",
        "TRIGGER: -PT5M",
        "SUMMARY: Party",
        "UID: 2@h.example",
    )
    places = found.places
    assert places[1] == places[2] == places[3] == places[4]
    assert places[6] == places[7]
    assert len(set(places)) == 4
    assert document(EVENTS.encode(), URL, kind).blocks == found.texts


@pytest.mark.parametrize(
    "other",
    [
        EVENTS.replace("\n", "\r\n"),
        EVENTS.replace("DTSTAMP:2026", "DTSTAMP:2027"),
        EVENTS.replace("SEQUENCE:0", "SEQUENCE:7"),
        EVENTS.replace("MODIFIED:2026", "MODIFIED:2027"),
        EVENTS.replace("A tool//1", "A tool//2"),
        EVENTS.replace("PRODID:-//A tool//1//EN\n", ""),
        EVENTS.replace("long\n  name", "lo\n ng name"),
        EVENTS.replace("UID:", "uid:"),
        EVENTS.replace("SEQUENCE:0\n", ""),
        EVENTS.replace("Line\\none", "Line\\None"),
        EVENTS.replace("DTSTAMP:", "DTSTAMP;X=1:"),
        EVENTS.strip(),
        EVENTS.replace("Party", "Par\n\tty"),
    ],
)
def test_stamps_and_folds_of_a_calendar_are_no_difference(other: str) -> None:
    assert blocks(other, CALENDAR) == blocks(EVENTS, CALENDAR)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SUMMARY: Party", "SUMMARY: Feast"),
        ("VERSION: 2.0", "VERSION: 2.1"),
        ("UID: 2@h.example", "UID: 3@h.example"),
        ("TRIGGER: -PT5M", "TRIGGER: -PT9M"),
        ("SUMMARY: Party", "LOCATION: Party"),
        (
            'DTSTART;TZID="Europe/Berlin": 20261201T100000',
            'DTSTART;TZID="Europe/Berlin": 20261202T100000',
        ),
        (
            'DTSTART;TZID="Europe/Berlin": 20261201T100000',
            'DTSTART;TZID="Asia/Seoul": 20261201T100000',
        ),
    ],
    ids=range(7),
)
def test_a_changed_property_is_a_change_with_its_name(old: str, new: str) -> None:
    other = EVENTS.replace(old.replace(": ", ":"), new.replace(": ", ":"))
    assert change(EVENTS, other, CALENDAR) == ([old], [new])


def test_an_event_that_moves_keeps_its_place_and_repetitions_have_their_own() -> None:
    def event(said: str) -> str:
        return f"BEGIN:VEVENT\n{said}\nEND:VEVENT\n"

    two = event("UID:1\nSUMMARY:A"), event("UID:1\nRECURRENCE-ID:2026\nSUMMARY:B")
    one, other = (
        blocks("BEGIN:VCALENDAR\n" + "".join(each), CALENDAR) for each in (two, two[::-1])
    )
    assert sorted(zip(one.texts, one.places, strict=True)) == sorted(
        zip(other.texts, other.places, strict=True)
    )
    assert len(set(one.places)) == 2


def test_hostile_calendars_are_lines() -> None:
    deep = "BEGIN:VEVENT\nUID:1\n" * 5_000 + "END:VEVENT\n" * 5_000
    for text in (deep, "UID:1\nBEGIN:VCALENDAR", "END:VEVENT\n", ';"' * 10_000):
        assert blocks(text, CALENDAR).texts == tuple(
            " ".join(it.split()) for it in text.split("\n") if it
        )


@given(
    st.text(alphabet="BEGINDVUID:;\"\\n \n\t-&*[]{}?!,'a1#|>%", max_size=80),
    st.sampled_from([YAML, LINES, CALENDAR]),
)
def test_any_text_is_read(text: str, kind: str) -> None:
    found = blocks(text, kind)
    assert len(found.texts) == len(found.places) == len(found.kinds)
