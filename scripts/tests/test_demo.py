"""The demo tells the truth from a crawl that missed a page or an edit, or made one up."""

from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from freshet.crawler import visit
from freshet.crawler.extensions.lab.synthetic_web.answers import SiteResponse
from freshet.crawler.extensions.lab.synthetic_web.content import (
    DAY_S,
    ENGLISH,
    Link,
    Revision,
    SyntheticUrl,
)
from freshet.crawler.extensions.lab.synthetic_web.site import (
    LivingPage,
    SyntheticSite,
    link_list,
    story,
)
from freshet.crawler.extensions.lab.synthetic_web.web import START_AT, SyntheticWeb
from freshet.storage.writer import VisitTables
from scripts import demo
from scripts.synthetic_server import WebServer

Answering = Callable[[SiteResponse, bool], SiteResponse]


def small_web() -> SyntheticWeb:
    """Make a list of three pages; between the crawls ``b`` is edited, and ``c`` is born."""
    edit = (Revision(START_AT + 8 * DAY_S, "paragraph_added"),)
    born_at = {"a": START_AT, "b": START_AT, "c": START_AT + 7 * DAY_S}
    links = [
        Link(name, SyntheticUrl("site", f"/{name}"), born_at=at) for name, at in born_at.items()
    ]
    resources = {"/": LivingPage(history=link_list("All pages", links), born_at=START_AT)}
    for name, at in born_at.items():
        history = story((name,), ENGLISH, edit if name == "b" else (), title=name)
        resources[f"/{name}"] = LivingPage(history=history, born_at=at)
    site = SyntheticSite(name="site", title="A site", resources=resources)
    return SyntheticWeb(1, {"site": site}, START_AT, START_AT + 60 * DAY_S)


def answering(monkeypatch: pytest.MonkeyPatch, target: str, change: Answering) -> None:
    """Let the server answer otherwise at a target; in the second crawl ``change`` gets True."""
    truthful = WebServer._answer

    def answer(self: WebServer, request: web.BaseRequest, name: str, at: float) -> SiteResponse:
        told = truthful(self, request, name, at)
        is_second = at > START_AT + 10 * DAY_S
        return change(told, is_second) if request.raw_path == target else told

    monkeypatch.setattr(WebServer, "_answer", answer)


def status(code: int, *, first: bool = False) -> Answering:
    return lambda told, second: SiteResponse(code, body=b"") if second or first else told


def away(told: SiteResponse, second: bool) -> SiteResponse:
    return SiteResponse(301, (("Location", "/a"),))


def as_before(added: str = "") -> Answering:
    """Return the answer of the first crawl in the second, too, with ``added`` under its title."""
    kept = []

    def answer(told: SiteResponse, second: bool) -> SiteResponse:
        if not second:
            kept.append(told)
            return told
        body = kept[0].body.replace(b"</h1>", f"</h1>{added}".encode())
        return SiteResponse(200, kept[0].headers, body)

    return answer


async def test_a_crawl_that_finds_the_truth_is_right(tmp_path: Path) -> None:
    assert await demo.demonstrate(small_web(), 10.0, tmp_path / "demo.db")


@pytest.mark.parametrize(
    ("target", "change"),
    [
        pytest.param("/a", status(404), id="gone in the second crawl"),
        pytest.param("/a", status(410, first=True), id="gone in both"),
        pytest.param("/b", status(404, first=True), id="an edited page is gone in both"),
        pytest.param("/c", status(404), id="a new page is gone"),
        pytest.param("/c", status(403), id="a new page is forbidden"),
        pytest.param("/", status(410), id="the list is gone"),
        pytest.param("/c", away, id="a new page leads to another"),
        pytest.param("/b", away, id="an edited page leads to another"),
        pytest.param("/b", as_before(), id="an edit is not seen"),
        pytest.param(
            "/a",
            as_before("<p>It storms, said the captain of the ship.</p>"),
            id="an edit that was not made",
        ),
        pytest.param("/", as_before(), id="an edit of the list is not seen"),
    ],
)
async def test_a_page_or_an_edit_too_few_or_too_many_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, change: Answering
) -> None:
    answering(monkeypatch, target, change)
    assert not await demo.demonstrate(small_web(), 10.0, tmp_path / "demo.db")


@pytest.mark.parametrize(
    ("place", "name"), [(visit.Reducer, "reduce"), (VisitTables, "_turned_round")]
)
async def test_a_fault_of_the_crawler_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: type, name: str
) -> None:
    real = getattr(place, name)

    def failing(*args: object) -> object:
        subjects = [getattr(each, "due", each) for each in args]
        reason = getattr(getattr(args[-1], "observation", None), "reason", None)
        if reason is None and any(getattr(it, "url", "").endswith("/b") for it in subjects):
            raise IndexError("tuple index out of range")
        return real(*args)

    monkeypatch.setattr(place, name, failing)
    assert not await demo.demonstrate(small_web(), 10.0, tmp_path / "demo.db")


def test_the_demo_exits_with_1_if_it_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "showcase", lambda seed: small_web())
    monkeypatch.setattr("sys.argv", ["demo.py"])
    demo.main()
    answering(monkeypatch, "/a", status(404))
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert isinstance(ended.value.code, str)
    assert "differs from the truth" in ended.value.code
