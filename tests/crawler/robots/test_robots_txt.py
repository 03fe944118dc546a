import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.robots import (
    LIMIT_BYTES,
    RobotsVerdict,
    allowed,
    cut_at_line_end,
    in_force,
    parse,
    standing,
)
from freshet.storage.entries import RobotsRecord, RobotsStanding

RFC_CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "robots_rfc_cases.json").read_text("utf-8")
)["cases"]
CLOSED = b"User-agent: *\nDisallow: /\n"
HOST = "https://example.org"


def allows(text: str, path: str, agent: str = "freshet") -> bool:
    return allowed(text.encode(), agent, HOST + path)


def holds(case: dict[str, Any]) -> bool:
    verdict = allowed(case["robots_txt"].encode(), case["user_agent"], case["url"])
    return verdict == bool(case["allowed"])


def test_at_least_70_of_the_72_rfc_cases_of_googles_suite_hold() -> None:
    assert len(RFC_CASES) == 72
    assert sum(map(holds, RFC_CASES)) >= 70


def test_the_rfc_cases_that_do_not_hold_are_those_explained() -> None:
    assert [case for case in RFC_CASES if not holds(case)] == [
        case for case in RFC_CASES if "explanation" in case
    ]


RFC_EXAMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [("freshet", "/a/b.gif", False), ("freshet", "/a/b.gif?size=2", True),
     ("freshet", "/example/", False), ("freshet", "/publications/x", True),
     ("foobot", "/publications/x", False), ("foobot", "/example/page.html", True),
     ("foobot", "/example/allowed.gif", True), ("barbot", "/example/page.html", False),
     ("bazbot", "/example/page.html", False), ("bazbot", "/b.gif", True),
     ("quxbot", "/example/page.html", True)],
)  # fmt: skip
def test_the_example_of_the_rfc_reads_as_the_rfc_says(
    agent: str, path: str, expected: bool
) -> None:
    assert allows(RFC_EXAMPLE, path, agent) == expected


@pytest.mark.parametrize("line", ["Sitemap: https://h/s.xml", "Crawl-delay: 3", "Host: h", "?"])
def test_lines_that_are_no_rules_do_not_end_a_run_of_user_agent_lines(line: str) -> None:
    text = f"User-agent: freshet\n{line}\n\nUser-agent: other\nDisallow: /x\n"
    assert not allows(text, "/x")
    assert not allows(text, "/x", "other")


@pytest.mark.parametrize("line", ["Sitemap: https://h/s.xml", "Crawl-delay: 3", "Host: h", "?", ""])
def test_lines_that_are_no_rules_do_not_end_a_group(line: str) -> None:
    assert not allows(f"User-agent: *\nDisallow: /a\n{line}\nDisallow: /b\n", "/b")


@pytest.mark.parametrize("rule", ["Disallow:", "Allow: nowhere", "Disallow: /y"])
def test_even_a_rule_without_effect_ends_the_run_of_user_agent_lines(rule: str) -> None:
    text = f"User-agent: freshet\n{rule}\nUser-agent: other\nDisallow: /x\n"
    assert allows(text, "/x")
    assert not allows(text, "/x", "other")


def test_groups_of_one_agent_are_merged() -> None:
    text = "User-agent: freshet\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: FRESHET\n"
    text += "Disallow: /b\n"
    assert [allows(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_a_group_of_its_own_frees_an_agent_from_the_rules_for_everybody() -> None:
    assert allows("User-agent: *\nDisallow: /\nUser-agent: freshet\n", "/")


@pytest.mark.parametrize(
    "named", ["freshet", "Freshet/1.0 (+https://h)", "FRESHET bot", "freshet*"]
)
def test_a_user_agent_line_names_an_agent_by_its_token_in_any_case(named: str) -> None:
    assert not allows(f"User-agent: {named}\nDisallow: /\n", "/", "Freshet/1.0 (+https://h)")


@pytest.mark.parametrize(
    "named", ["fresh", "freshetter", "freshet2", "my-freshet", "x freshet", ""]
)
def test_a_part_of_a_token_names_nobody(named: str) -> None:
    assert allows(f"User-agent: {named}\nDisallow: /\n", "/")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_all_line_ends_are_understood(end: str) -> None:
    assert not allows(f"User-agent: *{end}Disallow: /a{end}Allow: /b", "/a")


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_a_byte_order_mark_even_a_torn_one_does_not_hide_the_first_line(mark: bytes) -> None:
    assert not allowed(mark + CLOSED, "freshet", HOST)


@pytest.mark.parametrize(
    "text",
    ["User-agent *\nDisallow /\n", "useragent: *\nDisalow: /\n",
     "  USER-AGENT\t:\t*  # all\n\tdisallow :/#x\n",
     "User-agent: *\nDisallow: /caf\x00\nDisallow: /\n"],
)  # fmt: skip
def test_a_clumsy_refusal_is_a_refusal(text: str) -> None:
    assert not allows(text, "/")


lines = st.sampled_from(
    [b"user-agent:", b"Disallow: /*", b"allow:/", b"crawl-delay: 1", b"\r", b"\n"]
)


@given(
    st.lists(st.one_of(lines, st.binary(max_size=9)), max_size=12).map(b"".join),
    st.text(max_size=20),
    st.text(max_size=30),
)
def test_no_input_is_an_error(body: bytes, agent: str, url: str) -> None:
    robots = parse(body)
    delay_s = robots.crawl_delay_s(agent)
    assert robots.allows(agent, url) in {True, False}
    assert delay_s is None or delay_s >= 0.0


@given(st.binary(max_size=200))
def test_robots_txt_itself_may_always_be_fetched(body: bytes) -> None:
    assert parse(CLOSED + body).allows("freshet", f"{HOST}/robots.txt")


@pytest.mark.parametrize("rule", ["/ツ", "/%E3%83%84"])
def test_of_a_url_that_is_no_uri_the_stricter_reading_counts(rule: str) -> None:
    assert not allows(f"User-agent: *\nDisallow: {rule}\n", "/ツ")
    assert not allows(f"User-agent: *\nDisallow: /\nAllow: {rule}\n", "/ツ")
    assert allows(f"User-agent: *\nDisallow: /\nAllow: {rule}\n", "/%E3%83%84")


def test_a_verdict_names_the_rule_its_line_and_the_group() -> None:
    robots = parse(
        b"# none\r\nUser-agent: *\r\nDisallow: /caf\xc3\xa9 # closed\r\nallow: /caf$\r\n"
    )
    assert robots.verdict("freshet", f"{HOST}/caf%C3%A9/x") == RobotsVerdict(
        False, "Disallow: /café", 3, "*"
    )
    assert robots.verdict("freshet", f"{HOST}/caf") == RobotsVerdict(True, "Allow: /caf$", 4, "*")
    assert robots.verdict("freshet", f"{HOST}/x") == RobotsVerdict(True, None, None, "*")
    assert parse(b"").verdict("freshet", f"{HOST}/x") == RobotsVerdict(True)


def test_a_long_file_is_cut_at_a_line_end_and_what_was_read_counts() -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    body = head + b"#" * (LIMIT_BYTES - len(head) - 20) + b"\nDisallow: /" + b"b" * 30 + b"\n"
    robots = parse(body + b"Disallow: /c\n")
    assert not robots.allows("freshet", f"{HOST}/a")
    assert robots.allows("freshet", f"{HOST}/" + "b" * 30)
    assert robots.allows("freshet", f"{HOST}/c")


@given(st.binary(max_size=60), st.integers(0, 60))
def test_cutting_keeps_whole_lines_and_no_more_bytes_than_the_limit(
    body: bytes, limit: int
) -> None:
    kept = cut_at_line_end(body, limit)
    assert body.startswith(kept)
    assert len(kept) <= limit
    assert kept in (b"", body) or body[len(kept) : len(kept) + 1] in (b"\r", b"\n")


def test_a_rule_that_ends_exactly_at_the_limit_is_whole() -> None:
    assert cut_at_line_end(b"Disallow: /a\nDisallow: /b\n", 12) == b"Disallow: /a"


def test_many_agents_that_share_many_rules_cost_no_more_than_their_lines() -> None:
    agents = b"".join(b"User-agent: a%d\nCrawl-delay: 1\n" % n for n in range(7_000))
    rules = b"".join(b"Disallow: /%d*\n" % n for n in range(13_000))
    robots = parse(agents + rules)
    assert not robots.allows("a6999", f"{HOST}/12999")
    assert robots.crawl_delay_s("a0") == 1.0


@pytest.mark.parametrize(("value", "delay_s"), [("2", 2.0), (".5", 0.5), ("10.25 # s", 10.25)])
def test_crawl_delay_is_read_in_seconds(value: str, delay_s: float) -> None:
    assert parse(f"User-agent: *\nCrawl-delay: {value}\n".encode()).crawl_delay_s("x") == delay_s


@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf", "1_0", "1e3", "", "9" * 400])
def test_a_crawl_delay_that_is_no_duration_is_passed_over(value: str) -> None:
    assert parse(f"User-agent: *\nCrawl-delay: {value}\n".encode()).crawl_delay_s("x") is None


def test_a_crawl_delay_is_that_of_the_user_agent_lines_above_it() -> None:
    robots = parse(
        b"User-agent: a\nUser-agent: b\nCrawl-delay: 2\nUser-agent: c\nCrawl-delay: 9\n"
        b"User-agent: *\nDisallow: /x\nCrawl-delay: 4\nUser-agent: a\nCrawl-delay: 3\n"
        b"User-agent: d\nDisallow: /y\n"
    )
    delays = {agent: robots.crawl_delay_s(agent) for agent in "abcdz"}
    assert delays == {"a": 3.0, "b": 2.0, "c": 9.0, "d": None, "z": 4.0}
    assert not any(robots.allows(agent, f"{HOST}/x") for agent in "abcz")


def test_sitemap_lines_are_kept_in_order_wherever_they_stand() -> None:
    robots = parse(
        b"Sitemap: https://h/2.xml\nUser-agent: x\nsitemap:http://h/1.xml\nDisallow: /\n"
        b"Sitemap: /relative.xml\nSITEMAP: https://h/2.xml\nSitemap: none\nSitemap: a.xml\n"
    )
    assert robots.sitemaps == ("https://h/2.xml", "http://h/1.xml", "/relative.xml", "a.xml")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-16-le"])
def test_a_file_in_utf_16_with_its_mark_is_read(codec: str) -> None:
    text = "User-agent: *\nDisallow: /geheim\u00e4\n"
    robots = parse((text if codec == "utf-16" else f"\ufeff{text}").encode(codec))
    assert not robots.allows("freshet", f"{HOST}/geheim\u00e4")
    assert robots.allows("freshet", f"{HOST}/offen")


@pytest.mark.parametrize(
    ("status", "failure", "expected"),
    [(200, None, "parsed"), (204, None, "parsed"),
     (301, None, "allow_all"), (401, None, "allow_all"),
     (404, None, "allow_all"), (410, None, "allow_all"),
     (429, None, "unreachable"), (500, None, "unreachable"),
     (503, None, "unreachable"), (999, None, "unreachable"),
     (200, "cut short", "unreachable"), (None, "timeout", "unreachable"),
     (None, None, "unreachable")],
)  # fmt: skip
def test_the_answer_decides_what_is_known_of_a_robots_txt(
    status: int | None, failure: str | None, expected: RobotsStanding
) -> None:
    assert standing(status, failure) is expected


def test_a_parsed_file_is_in_force_in_full_whatever_limit_it_was_cut_at() -> None:
    body = b"#" * LIMIT_BYTES + b"\n" + CLOSED
    assert not in_force(RobotsRecord("parsed", 0.0, body)).allows("freshet", HOST)
