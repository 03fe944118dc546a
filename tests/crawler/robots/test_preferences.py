"""What is stated of the use of pages, by its three grammars, and what holds of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.robots import decisive, parse
from freshet.crawler.robots.preferences import (
    USES,
    Preference,
    as_text,
    forbidding,
    from_text,
    in_words,
    of_lines,
    of_page,
    of_response,
    reservations,
    resolved,
    restated,
    signals,
    usage,
)
from freshet.storage.errors import StoreError

NO, YES = False, True


@pytest.mark.parametrize(
    ("value", "found"),
    [
        # The examples of draft-ietf-aipref-vocab.
        ("train-ai=y, search=n", {"ai-train": YES, "search": NO}),
        ('train-ai=y, train-ai, search=n, search="n"', {}),
        ("train-ai;allow=n, train-ai=y", {"ai-train": YES}),
        ('train-ai;has;parameters="?";', {}),
        # Structured fields.
        ("train-ai=n", {"ai-train": NO}),
        ("train-ai=n;why=x;a=1.5", {"ai-train": NO}),
        ("  train-ai=n\t,\tsearch=y ", {"ai-train": NO, "search": YES}),
        ('other=(a "b, c" 1);q=?1, train-ai=n', {"ai-train": NO}),
        ("a=:YQ==:, b=@1, c=?0, d=-1.5, train-ai=n", {"ai-train": NO}),
        # Neither yes nor no.
        ("train-ai=?0, search=Y", {}),
        ("train-ai", {}),
        # Unknown words are ignored, damage is not mended.
        ("bots=n, train-ai=n", {"ai-train": NO}),
        ("Train-ai=n, search=y", {}),
        ("train-ai=n,", {}),
        ("train-ai=n search=y", {}),
        ("train-ai=", {}),
        ('train-ai=n, x="', {}),
        ("", {}),
    ],
)
def test_content_usage_is_a_dictionary_of_structured_fields(
    value: str, found: dict[str, bool]
) -> None:
    assert usage(value) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("search=yes, ai-train=no", {"search": YES, "ai-train": NO}),
        ("search=yes,ai-train=no,ai-input=yes", {"search": YES, "ai-train": NO, "ai-input": YES}),
        ("Search = Yes , AI-Train=NO", {"search": YES, "ai-train": NO}),
        ("ai-train=maybe, search", {}),
        ("other=no", {}),
        ("", {}),
    ],
)
def test_content_signals_are_pairs(value: str, found: dict[str, bool]) -> None:
    assert signals(value) == found


#: The example of draft-ietf-aipref-attach, and more.
ROBOTS = b"""User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y
 content-usage :\t/ai-ok/not/*.pdf$\ttrain-ai=n # not these
Content-Usage: /twice/ train-ai=y
Content-Usage: /twice/ search=n
Content-Usage: /bad/ train-ai
Content-Signal: /signal/ ai-input=no

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""


@pytest.mark.parametrize(
    ("agent", "path", "found"),
    [
        ("freshet", "/test", {"ai-train": NO}),
        ("freshet", "/ai-ok/test", {"ai-train": YES}),
        ("freshet", "/ai-ok/not/a.pdf", {"ai-train": NO}),
        ("freshet", "/ai-ok/not/a.pdfs", {"ai-train": YES}),
        ("freshet", "/twice/a", {"ai-train": YES, "search": NO}),
        ("freshet", "/bad/a", {}),
        ("freshet", "/signal/a", {"ai-train": NO, "ai-input": NO}),
        ("ExampleBot/1.0", "/ai-ok/test", {"ai-train": YES}),
        ("examplebot", "/test", {"ai-train": YES}),
    ],
)
def test_the_longest_path_of_robots_txt_counts(
    agent: str, path: str, found: dict[str, bool]
) -> None:
    lines = parse(ROBOTS).usage(agent, f"https://h.example{path}")
    assert resolved(list(of_lines(lines, "robots"))) == found


def test_lines_on_use_change_nothing_of_what_may_be_fetched() -> None:
    without = b"\n".join(line for line in ROBOTS.splitlines() if b"ontent-" not in line)
    for path in ("/", "/never/a", "/ai-ok/a", "/bad/"):
        for agent in ("freshet", "ExampleBot"):
            url = f"https://h.example{path}"
            assert parse(ROBOTS).allows(agent, url) == parse(without).allows(agent, url)
    # A line between two names parts no group: others ignore it.
    shared = b"User-agent: a\nContent-Signal: search=no\nUser-agent: b\nDisallow: /x\n"
    for agent in ("a", "b"):
        assert not parse(shared).allows(agent, "https://h.example/x")
        assert len(parse(shared).usage(agent, "https://h.example/")) == 1
    assert parse(shared).usage("c", "https://h.example/") == []


def response(**headers: str | list[str]) -> list[Preference]:
    values = {name.replace("_", "-").lower(): it for name, it in headers.items()}

    def of(name: str) -> list[str]:
        found = values.get(name.lower(), [])
        return [found] if isinstance(found, str) else found

    return list(of_response(of, "freshet"))


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"Content_Usage": "train-ai=n"}, {"ai-train": NO}),
        # Lines of one header are one list.
        ({"Content_Usage": ["train-ai=y", "train-ai=n"]}, {"ai-train": NO}),
        ({"Content_Signal": "ai-input=no"}, {"ai-input": NO}),
        # Mining is more than training.
        ({"tdm_reservation": "1"}, {"ai-train": NO, "tdm": NO}),
        ({"tdm_reservation": "0"}, {"tdm": YES}),
        ({"tdm_reservation": "2"}, {}),
        ({"X_Robots_Tag": "noai, noimageai"}, {"ai-input": NO, "ai-train": NO, "images-ai": NO}),
        ({"X_Robots_Tag": "other: noai"}, {}),
        ({"X_Robots_Tag": ["other: noai", "freshet: noarchive"]}, {"archive": NO}),
        ({"X_Robots_Tag": "max-snippet:0"}, {"snippet": NO}),
        ({"X_Robots_Tag": "max-snippet: -1"}, {"snippet": YES}),
        ({"X_Robots_Tag": "NOSNIPPET"}, {"snippet": NO}),
        ({"X_Robots_Tag": "index, follow"}, {}),
        # The most restrictive one counts.
        ({"Content_Usage": "train-ai=y", "Content_Signal": "ai-train=no"}, {"ai-train": NO}),
        ({"Content_Usage": "train-ai=y", "tdm_reservation": "1"}, {"ai-train": NO, "tdm": NO}),
    ],
)
def test_headers_state_uses(headers: dict[str, str], found: dict[str, bool]) -> None:
    assert resolved(response(**headers)) == found


def test_a_page_states_uses_and_counts_before_its_header() -> None:
    page = list(of_page(["noai", "tdm-reservation: 1", "tdm-reservation: x"], "freshet"))
    assert resolved(page) == {"ai-input": NO, "ai-train": NO, "tdm": NO}
    header = response(tdm_reservation="0")
    assert resolved([*header, *page])["tdm"] is NO
    free = list(of_page(["tdm-reservation: 0"], "freshet"))
    assert resolved([*response(tdm_reservation="1"), *free]) == {"tdm": YES}


#: The example of the protocol, and more.
RESERVED = b"""[
    {"location": "/a/", "tdm-reservation": 1},
    {"location": "/b/html/", "tdm-reservation": 1, "tdm-policy": "https://h.example/policy.json"},
    {"location": "/b/images/*.jpg$", "tdm-reservation": 0},
    {"location": "/b/", "tdm-reservation": "1"},
    {"location": "/a/free/", "tdm-reservation": 0},
    {"location": "/c/", "tdm-reservation": 2}, {"location": 3, "tdm-reservation": 1}, 7, {}
]"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a/x", {"ai-train": NO, "tdm": NO}),
        ("/a/free/x", {"tdm": YES}),
        ("/b/html/x", {"ai-train": NO, "tdm": NO}),
        ("/b/images/x.jpg", {"tdm": YES}),
        ("/b/images/x.jpgs", {"ai-train": NO, "tdm": NO}),
        ("/c/x", {}),
        ("/", {}),
    ],
)
def test_a_file_reserves_mining_by_paths(path: str, found: dict[str, bool]) -> None:
    lines = decisive(reservations(RESERVED), f"https://h.example{path}")
    assert resolved(list(of_lines(lines, "file"))) == found


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"<html>", b"[", b"null", b"[" * 100_000, b'{"location": "/"}', b"\xff"]
)
def test_what_is_no_file_of_reservations_reserves_nothing(body: bytes) -> None:
    assert reservations(body) == []


def test_what_forbids_a_use_is_named() -> None:
    stated = response(Content_Usage="train-ai=n, search=y")
    found = forbidding(stated, ["search", "ai-train"])
    assert found == Preference("ai-train", NO, "header", "Content-Usage: train-ai=n, search=y")
    assert forbidding(stated, ["search", "tdm"]) is None
    assert dict(in_words(stated)) == {
        "search": "allowed (header: Content-Usage: train-ai=n, search=y)",
        "ai-train": "forbidden (header: Content-Usage: train-ai=n, search=y)",
    }


def test_statements_are_those_of_before_where_nothing_is_read() -> None:
    def headers(name: str) -> list[str]:
        return ["1"] if name == "tdm-reservation" else []

    robots = parse(ROBOTS).usage("freshet", "https://h.example/a")
    reserved = reservations(b'[{"location": "/", "tdm-reservation": 1}]')
    read = {"robots": robots, "reserved": reserved, "headers": headers, "contents": ["nosnippet"]}
    nothing = {"robots": [], "reserved": [], "headers": lambda _: [], "contents": []}
    text = restated(None, "x", **read)  # type: ignore[arg-type]
    assert {it.place for it in from_text(text)} == {"robots", "file", "header", "page"}
    assert restated(text, "x", **read) is None  # type: ignore[arg-type]
    assert restated(text, "x") is None
    kept = restated(text, "x", robots=[])
    assert {it.place for it in from_text(kept)} == {"file", "header", "page"}
    assert restated(text, "x", **nothing) == ""  # type: ignore[arg-type]
    assert restated(None, "x", **nothing) is None  # type: ignore[arg-type]


EDITED = [
    "no", "{}", "1", "null", '"search"', "[1]", "[[]]", '[["search",true,"header"]]',
    '[["sell",true,"header",""]]', '[["search",1,"header",""]]', '[["search",true,"moon",""]]',
    '[["search",true,"header",3]]', '[[["search"],true,"header",""]]', "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", EDITED, ids=lambda text: text[:30])
def test_edited_statements_are_an_error_for_readers_and_read_again_by_a_visit(text: str) -> None:
    with pytest.raises(StoreError, match="did not write") as caught:
        from_text(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250
    assert restated(text, "x", contents=["nosnippet"]) == restated(
        None, "x", contents=["nosnippet"]
    )
    assert restated(text, "x", robots=[], reserved=[], headers=lambda _: [], contents=[]) == ""


statements = st.builds(
    Preference, st.sampled_from(USES), st.booleans(),
    st.sampled_from(["robots", "file", "header", "page"]), st.text(max_size=9),
)  # fmt: skip


@given(st.lists(statements, max_size=9))
def test_one_that_forbids_is_enough(stated: list[Preference]) -> None:
    assert from_text(as_text(stated)) == tuple(sorted(set(stated)))
    found = resolved(stated)
    for use in USES:
        said = [it.allowed for it in stated if it.use == use]
        assert found.get(use) == (all(said) if said else None)
        assert (forbidding(stated, [use]) is not None) == (found.get(use) is False)


@given(st.text(alphabet='tran-i=y,; ()"?:@%ab1.*\\', max_size=40))
def test_any_text_is_read(value: str) -> None:
    assert set(usage(value)) <= {"ai-train", "search"}
    signals(value)
