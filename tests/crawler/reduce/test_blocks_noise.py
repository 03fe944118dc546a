"""What differs between two versions of a page although no reader sees an edit."""

import json
from collections.abc import Callable

import pytest

from freshet.crawler.read.documents import _identified
from freshet.crawler.reduce.blocks import Blocks, compared
from freshet.crawler.reduce.content import text_of
from freshet.crawler.reduce.formats import pdf
from freshet.crawler.reduce.main_text import main_text
from freshet.crawler.reduce.numbers import normal
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sitemaps import read_feed
from tests.crawler.reduce.pages import pieces_in

URL = "https://h.example/"


def document_of(body: bytes) -> str:
    tree, pieces = pieces_in(body)
    return " ".join(text_of(tree, piece) for piece in pieces)


# -- default-ignorable characters --------------------------------------------

#: One of each kind, and the ends of the ranges.
IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200c\u200d\u200e\u200f"
    "\u202a\u202e\u2060\u2066\u2069\u206f\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0\ufff8\U0001bca0"
    "\U0001d17a\U000e0000\U000e0041\U000e0100\U000e0fff"
)
#: A word in which readers need such a character, or do not.
WORDS = ("Wachs{}tum", "می{}خواهم", "क्{}ष", "👩{}💻", "ไทย{}ไทย", "{}first", "last{}", "café{}s")


def html(text: str) -> Blocks:
    body = f"<title>t</title><p>One {text}, <a href=x>{text}</a> in a text.<p>{text}"
    return parse(body.encode(), URL, "text/html; charset=utf-8").blocks


def plain(text: str) -> Blocks:
    return parse(f"One {text}.\n\n{text}".encode(), URL, "text/plain; charset=utf-8").blocks


def of_json(text: str) -> Blocks:
    body = json.dumps({"a": [text, {f"key {text}": 1}]})
    return parse(body.encode(), URL, "application/json").blocks


def feed(text: str) -> Blocks:
    item = f"<item><title>{text}</title><link>{URL}</link></item>"
    return read_feed(f'<rss version="2.0"><channel>{item}</channel></rss>'.encode(), URL).blocks


def of_pdf(text: str) -> Blocks:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "read_pdf", lambda _: ((f"One {text}.", text), {}))
        return parse(b"%PDF-1.7", URL, "application/pdf").blocks


def of_xml(text: str) -> Blocks:
    body = f"<r a='{text}'><p>{text} and <b>{text}</b></p></r>"
    return parse(body.encode(), URL, "text/xml").blocks


def of_yaml(text: str) -> Blocks:
    return parse(f"a: [One {text}]\n".encode(), URL, "application/yaml").blocks


def of_calendar(text: str) -> Blocks:
    event = f"BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:One {text}\r\nEND:VEVENT"
    body = f"BEGIN:VCALENDAR\r\n{event}\r\nEND:VCALENDAR\r\n"
    return parse(body.encode(), URL, "text/calendar").blocks


READERS: list[Callable[[str], Blocks]] = [
    html, plain, of_json, of_pdf, feed, of_xml, of_yaml, of_calendar,
]  # fmt: skip


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("word", WORDS)
def test_ignorable_characters_are_no_change(read: Callable[[str], Blocks], word: str) -> None:
    without = read(word.format(""))
    assert [each for each in IGNORABLE if read(word.format(each)) != without] == []
    assert len(without) > 0


@pytest.mark.parametrize("read", READERS[:2])
def test_ignorable_characters_alone_are_no_block(read: Callable[[str], Blocks]) -> None:
    assert len(read(IGNORABLE)) == len(read("x")) - 1


def test_the_core_ignores_the_same_characters_as_the_interpreter() -> None:
    ranges = (0x80, 0x3200), (0xFE00, 0x10010), (0x1BC90, 0x1D200), (0xDFFF0, 0xE1010)
    codes = (code for start, stop in ranges for code in range(start, stop))
    spared = [chr(code) for code in codes if not chr(code).isspace() and chr(code) not in "☐☑"]
    ignored = [each for each in spared if not compared(each)]
    assert set(IGNORABLE) <= set(ignored)
    body = "".join(f"<p>{each}" for each in spared)
    found = main_text(*pieces_in(body.encode())).texts
    assert len(found) == len(spared) - len(ignored)
    assert not any(map(set(ignored).__contains__, found))


def test_documents_keep_ignorable_characters() -> None:
    text = "می\u200cخواهم 👩\u200d💻 soft\xadly"
    body = f"<main><h1>T</h1><p>{text} {'and more words of prose ' * 20}</main>".encode()
    assert text in document_of(body)


@pytest.mark.parametrize("character", IGNORABLE)
def test_ignorable_characters_change_no_id_of_a_block_and_no_condition(character: str) -> None:
    (shown,), (plainly,) = _identified([f"so{character}ft"]), _identified(["soft"])
    assert shown == (plainly[0], f"so{character}ft")
    assert normal(f"so{character}ft") == "soft"


# -- machine-readable times --------------------------------------------------

#: A valid time, and another one.
VALID = (
    ("2026-01-01", "2026-01-02"), ("2026-01-01T10:00", "2026-01-01T11:00"),
    ("2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"), ("2026-01-01 10:00:00.123+01:00", "2027"),
    ("2026-01-01T10:00:00.123456Z", "2026-01"), ("2026-W05", "2026-W06"), ("01-31", "02-28"),
    ("--01-31", "12:00"), ("10:30", "10:31"), ("10:30:15.5", "10:30:15.6"), ("PT4H18M3S", "PT4H"),
    ("P2DT1H", "P2D"), ("4h 18m 3s", "4h 18m"), ("+01:00", "Z"), (" 2026-01-01 ", "2026-01-03"),
)  # fmt: skip
INVALID = (
    "", " ", "yesterday", "2026-13-01", "2026-01-32", "01/02/2026", "25:00", "2026-01-01T", "now",
    "Thu, 01 Jan 2026 10:00:00 GMT", "P", "PT", "{{ date }}", "2026-1-1",
)  # fmt: skip


def timed(moment: str, text: str, around: str = "<p>Concert: {}, doors open</p>") -> Blocks:
    body = around.format(f'<time class="x" datetime="{moment}">{text}</time>')
    return parse(f"<p>Before.</p>{body}<p>After.</p>".encode(), URL, "text/html").blocks


@pytest.mark.parametrize(("moment", "other"), VALID)
def test_a_machine_readable_time_counts_in_place_of_its_text(moment: str, other: str) -> None:
    first = timed(moment, "3 hours ago")
    assert timed(moment, "on <b>1 January</b>") == first
    assert timed(other, "3 hours ago").texts != first.texts
    assert " ".join(moment.split()) in first.texts[1]


@pytest.mark.parametrize("moment", INVALID)
def test_of_an_invalid_time_the_text_counts(moment: str) -> None:
    assert timed(moment, "3 May").texts == ("Before.", "Concert: 3 May, doors open", "After.")


@pytest.mark.parametrize(
    "around",
    ["<p>{}</p>", "<ul><li>Release {} of it</ul>", "<table><tr><td>{}<td>x</table>", "<p>Due {}.",
     "<p>From {} on, <a href=x>a link</a></p>", "<p><a href=x>Meeting {}</a> and more text</p>",
     "<p><span hidden>x</span>Until {}", "<h2>Minutes of {}</h2>", "<div>Ends {}<br>soon</div>",
     "<p>Posted by Ann {}</p>"],
)  # fmt: skip
def test_the_text_of_an_unchanged_time_may_move_anywhere(around: str) -> None:
    first = timed("2026-01-01T10:00", "3 hours ago", around)
    assert timed("2026-01-01T10:00", "1 January 2026", around) == first
    assert timed("2026-01-02T10:00", "3 hours ago", around).texts != first.texts


@pytest.mark.parametrize(
    "around",
    ["<p>Last updated {}</p>", "<p>This page was last edited on {}</p>", "<p>Generated at {}</p>",
     "<p>Updated: {}</p>", "<p>Last seen {}</p>", "<p>Active {}</p>", "<p>Last login: {}</p>",
     "<p>Page rendered at {}</p>", "<p>Last activity: {}</p>", "<p>Today is {}</p>"],
)  # fmt: skip
def test_a_machine_readable_time_in_a_stamp_is_noise(around: str) -> None:
    assert timed("2026-01-01T10:00Z", "3 hours ago", around).texts == ("Before.", "After.")


def test_documents_and_anchors_keep_the_text_of_a_time() -> None:
    link = '<a href=/x><time datetime="2026-01-01">3 hours ago</time></a>'
    body = f"<main><h1>T</h1><p>Said {link}: {'and more words of prose ' * 20}</main>".encode()
    assert "3 hours ago" in document_of(body)
    assert "3 hours ago" in parse(body, URL, "text/html").links.anchors


@pytest.mark.parametrize("unit", ["<time datetime=10:00>", '<time datetime="10:00', "<a <time "])
def test_many_times_are_read_in_linear_time(unit: str) -> None:
    assert parse(unit.encode() * 3_000, URL, "text/html").blocks is not None


# -- relative times ----------------------------------------------------------

RELATIVE = (
    "3 hours ago", "vor 3 Stunden", "il y a 3 heures", "hace 3 horas", "há 3 horas", "3 ore fa",
    "3 uur geleden", "för 3 timmar sedan", "for 3 timer siden", "3 tuntia sitten", "3時間前",
    "３ 時間前", "三小时前", "3小時前", "3시간 전", "منذ 3 ساعات", "قبل ٣ ساعات", "۳ ساعت پیش",
    "לפני 3 שעות", "3 часа назад", "3 години тому", "3 godziny temu", "před 3 hodinami",
    "3 órával ezelőtt", "acum 3 ore", "πριν από 3 ώρες", "3 saat önce", "3 giờ trước",
    "3 ชั่วโมงที่ผ่านมา", "3 jam yang lalu", "3 घंटे पहले", "prije 3 sata",
    "pred 3 urami", "prieš 3 valandas", "pirms 3 stundām", "fa 3 hores", "duela 3 ordu",
    "gestern", "ieri", "вчера", "昨日", "어제", "أمس", "jetzt", "vorgestern", "vor 3 Std.",
    "· vor 3 Stunden ·", "(il y a 1\xa0h)", "Vor 12 Monaten",
)  # fmt: skip
SENTENCES = (
    "Vor 3 Stunden fiel die Brücke", "Er fiel vor 3 Stunden", "3時間前に橋が落ちた", "in 3 Stunden",
    "3 Stunden", "3 h", "-3 h", "3 years", "no", "most", "hier", "como", "now", "sad", "کل",
    "heute", "letztes Jahr", "L’accident a eu lieu il y a 3 heures", "今日", "vor", "ago", "fa",
    "前", "3", "Gestern sangen wir", "3 jours", "por 3 horas", "3 Tage vor dem Fest", "今年",
)  # fmt: skip


@pytest.mark.parametrize("stamp", RELATIVE)
def test_a_relative_time_in_any_language_is_noise(stamp: str) -> None:
    body = f"<p>Kept.</p><p>{stamp}</p>".encode()
    assert parse(body, URL, "text/html; charset=utf-8").blocks.texts == ("Kept.",)
    assert parse(f"Kept.\n\n{stamp}".encode(), URL, "text/plain").blocks.texts == ("Kept.",)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_only_has_words_of_a_relative_time_is_content(sentence: str) -> None:
    body = f"<p>Kept.</p><p>{sentence}</p>".encode()
    assert parse(body, URL, "text/html; charset=utf-8").blocks.texts == ("Kept.", sentence)
