"""Traps: endless URLs are told by their shape, and ordinary sites are left alone."""

from datetime import date
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission.traps import TrapLimits, TrapSign, classify, pattern_of
from freshet.crawler.urls import resolve

LIMITS = TrapLimits()
TOKEN = "0123456789abcdef0123456789abcdef"


def sign(reference: str) -> TrapSign | None:
    return classify(f"https://example.org{reference}", LIMITS)


@pytest.mark.parametrize(
    "reference",
    ["", "/", "/article/12345", "/page/17", "/2026/11/21/some-article-title",
     "/2026-11-21-some-article.html", "/news/2026/11/title/",
     "/std/collections/hash_map/struct.HashMap.html", "/library/asyncio-task.html#task-object",
     "/wiki/Crawler_(disambiguation)", "/files/000/000/000/012.jpg", "/2011/11/11/11-things",
     "/a/b/a/b/c", "/en/docs/en/api/en", "/cars;colour=red/model;year=2026", "/2026/", "/rfc/9309",
     "/?"],
)  # fmt: skip
def test_an_ordinary_url_bears_no_sign(reference: str) -> None:
    assert sign(reference) is None


@pytest.mark.parametrize(
    "reference",
    ["/" + "a" * 2048, "/?q=" + "a" * 2048, "/" + "/".join(f"s{i}" for i in range(33)), "/a/a/a",
     "/x/a/b/a/b/a/b/y", "/a/b/c/a/b/c/a/b/c/", "/a/1/a/1/a/1", "/a/w/a/x/a/y/a/z", "/a////b"],
)  # fmt: skip
def test_endless_depth_is_refused_at_once(reference: str) -> None:
    found = sign(reference)
    assert found is not None
    assert (found.kind, found.cap) == ("path", 0)


def test_the_limits_of_depth_are_those_given() -> None:
    limits = TrapLimits(max_url_length=60, max_path_segments=4, max_repeats=2)
    kinds = [
        classify(f"https://h{path}", limits)
        for path in ("/a/b/c/d", "/a/a", "/a/b/c/d/e", "/" * 60)
    ]
    assert [k is not None for k in kinds] == [False, True, True, True]


def test_refused_paths_share_few_shapes() -> None:
    shapes = {sign("/a" * n) for n in range(3, 40)}
    assert {s.shape for s in shapes if s} == {
        "/a/… (repeated segments)",
        "/a/… (more than 32 segments)",
    }


@pytest.mark.parametrize(
    "reference",
    ["/a;jsessionid=0A1B2C!-123!456", "/a;JSESSIONID=x1", "/a?PHPSESSID=k3j4",
     "/a?ASPSESSIONIDQABCDRTT=KEABCDEFGHIJ", "/a?CFID=123456&CFTOKEN=87654321", f"/a?sid={TOKEN}",
     f"/a?session_id={TOKEN}", "/a?sessionid=123e4567-e89b-12d3-a456-426614174000",
     "/(S(lit3py55t21z5v55vlm25s55))/a"],
)  # fmt: skip
def test_a_session_id_is_counted_under_the_url_without_it(reference: str) -> None:
    found = sign(reference)
    assert found is not None
    assert (found.kind, found.cap) == ("session", 50)
    assert found.shape.startswith("/a (")


@pytest.mark.parametrize(
    ("query", "shape", "cap"),
    [("month=2031-05", "/a?month=# (sid)", 400), ("topic=7", "/a?topic (sid)", 5000)],
)
def test_a_session_id_beside_a_trap_is_bounded_with_it(query: str, shape: str, cap: int) -> None:
    assert sign(f"/a?{query}&sid={TOKEN}") == TrapSign("session", shape, cap)


@pytest.mark.parametrize(
    ("reference", "shape"),
    [
        ("/calendar/2031/05/", "/calendar/#/#/"),
        ("/calendar/2031/5", "/calendar/#/#"),
        ("/2026/11/21/", "/#/#/#/"),
        ("/events/2031-05", "/events/#-#"),
        ("/events/2031-05-01/?view=week", "/events/#-#-#/?view"),
        ("/?month=2031-05", "/?month=#"),
        ("/cal?year=2031&month=5", "/cal?month=#&year=#"),
        ("/cal?m=5&view=list&y=2031&d=1", "/cal?d=#&m=#&view&y=#"),
        ("/cal?event%5Byear%5D=2031&event%5Bmonth%5D=5", "/cal?event[month]=#&event[year]=#"),
        ("/?m=202611", "/?m=#"),
        ("/?tribe-bar-date=2031-05-01", "/?tribe-bar-date=#"),
        ("/?start=2031-05-01T00%3A00%3A00", "/?start=#"),
        ("/view.php?view=month&time=1764547200", "/view.php?time=#&view"),
    ],
)
def test_a_calendar_is_counted_under_its_shape_without_the_date(reference: str, shape: str) -> None:
    assert sign(reference) == TrapSign("calendar", shape, 400)


@pytest.mark.parametrize(
    "query",
    ["sid=12345", "session=intro-to-async-python-3", "s=crawler", "PHPSESSID=",
     "id=7&date=2026-11-21", "id=202611", "year=2031", "month=5", "q=2026-11-21+crawler",
     "time=12"],
)  # fmt: skip
def test_what_only_sounds_like_a_session_or_a_date_is_an_ordinary_query(query: str) -> None:
    found = sign(f"/a?{query}")
    assert found is not None
    assert found.kind == "query"


@pytest.mark.parametrize(
    ("reference", "shape"),
    [("/list?b=2&a=1", "/list?a&b"), ("/list?a=1&a=2&a=3", "/list?a"),
     ("/list?f[0]=x&f%5B17%5D=y", "/list?f[#]"), ("/list?12345", "/list?")],
)  # fmt: skip
def test_a_query_is_counted_under_the_set_of_its_names(reference: str, shape: str) -> None:
    assert sign(reference) == TrapSign("query", shape, 5000)


@pytest.mark.parametrize(
    ("reference", "pattern"),
    [("/list?page=7&sort=up", "/list?page&sort"), ("/article/17?print=1", "/article/*?print"),
     ("/wiki/Tea?printable=yes", "/wiki/*?printable"),
     ("/2026/11/a-title/?share=x", "/#/#/*/?share"),
     ("/w/index.php?title=Tea&printable=yes", "/w/index.php?printable&title"),
     ("/show2.php?id=7", "/show2.php?id"), ("/17?print=1", "/#?print"), ("/?p=1", "/?p"),
     (f"/rooms/1?sid={TOKEN}", "/rooms/* (sid)"),
     ("/a/b;jsessionid=0A1B2C?x=1", "/a/*?x (jsessionid)"),
     ("/calendar/2031/05/", "/calendar/#/*/ (dates)"), ("/a/a/a", None)],
)  # fmt: skip
def test_a_pattern_leaves_out_numbers_and_names_of_pages(
    reference: str, pattern: str | None
) -> None:
    found = sign(reference)
    assert found is not None
    assert pattern_of(found) == pattern


@given(st.integers(1, 12), st.integers(1900, 2199), st.sampled_from(["/c/{y}/{m}/", "/?m={y}-{m}"]))
def test_all_months_of_a_calendar_share_one_shape(month: int, year: int, form: str) -> None:
    assert sign(form.format(y=year, m=month)) == sign(form.format(y=2026, m=11))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.text("0123456789-xyz", max_size=9)), min_size=1)
)
def test_no_values_make_more_than_one_shape_of_a_kind(parameters: list[tuple[str, str]]) -> None:
    query = "&".join(f"{name}={value}" for name, value in parameters)
    found = sign(f"/list?{query}")
    assert found is not None
    names = sorted({name for name, _ in parameters})
    assert [n.removesuffix("=#") for n in found.shape.removeprefix("/list?").split("&")] == names


@given(st.text("abc/?#&=;()%._-0123456789[]", max_size=40))
def test_every_url_gets_a_verdict_with_a_shape_in_one_line(reference: str) -> None:
    url = resolve(f"/{reference}", "https://example.org/")
    found = classify(url, LIMITS) if url else None
    assert found is None or (found.shape.startswith("/") and "\n" not in found.shape)


@pytest.mark.parametrize("dated", ["/calendar/{0}/{1:02}/{2:02}", "/calendar/{0}-{1:02}-{2:02}/",
    "/e?date={0}-{1:02}-{2:02}", "/e?date={0}{1:02}{2:02}", "/e?day={0}/{1}/{2}",
    "/e?view=day&d={0}-{1:02}-{2:02}",
    "/e?day={0}-{1}-{2}", "/calendar/{0}/{1}", "/calendar/{0}-{1:02}", "/e?month={0}-{1:02}",
    "/e?year={0}&month={1}", "/e?m={1}&y={0}"])  # fmt: skip
def test_what_is_past_of_a_calendar_has_a_shape_of_its_own(dated: str) -> None:
    today = date(2027, 5, 15)

    def shape(*day: int) -> str:
        found = classify(f"https://example.org{dated.format(*day)}", LIMITS, lambda: today)
        assert found is not None
        assert found.kind == "calendar"
        return found.shape

    assert shape(2026, 4, 14) == f"{shape(2028, 6, 16)} (past)"
    # Today, and the month that it is in, are not past.
    assert shape(2027, 5, 15) == shape(2028, 6, 16) == shape(2027, 10, 1)


def test_the_past_of_a_calendar_in_unix_time_has_a_shape_of_its_own() -> None:
    url, today = "https://example.org/e?time=1800000000", date(2027, 1, 15).toordinal()
    shapes = [classify(url, LIMITS, partial(date.fromordinal, today + n)) for n in (0, 1)]
    assert [it.shape for it in shapes if it] == ["/e?time=#", "/e?time=# (past)"]
