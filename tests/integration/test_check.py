"""`freshet check URL` asks once, tells each step, and stores nothing."""

import time
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.check import Check, check
from freshet.crawler.errors import CrawlError
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.crawler.extensions.browser.test_chromium_browser import needs_chromium
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import SmallStore

TEXT = "<title>Tea</title><main><h1>Tea</h1><p>A pot of green tea costs {} today.</p></main>"
HEADER = "<header><p>Seen by {} people</p></header>"


async def checked(web: Scripted, target: str, db: Path, **settings: object) -> Check:
    return await check(quick(**settings), db, [f"{web.origin('h')}{target}"], time.time())


def steps(found: Check) -> dict[str, str]:
    return {step.name: step.answer for step in found.steps}


async def test_each_rung_is_told_against_the_stored_version_and_nothing_is_stored(
    tmp_path: Path,
) -> None:
    db, pages = tmp_path / "c.db", {"/": Page(HEADER.format(1) + TEXT.format("3.20"))}
    async with scripted({"h": pages}) as web:
        seeds = seeds_from_arguments([web.origin("h")]).seeds
        await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
        before = db.read_bytes()
        same = await checked(web, "/", db)
        pages["/"] = Page(HEADER.format(2) + TEXT.format("3.20"))
        frame = await checked(web, "/", db)
        pages["/"] = Page(HEADER.format(3) + TEXT.format("3.40"))
        dearer = await checked(web, "/", db)
        pages["/"] = Page(HEADER.format(3) + TEXT.format("3.20") + "<p><img src=/a alt=x></p>")
        pictured = await checked(web, "/", db)
        pages["/"] = Page(HEADER.format(3) + TEXT.format("3.20").replace("day.", "day"))
        spaced = await checked(web, "/", db)
    assert (steps(same)["body"], same.conclusion) == ("equal", "unchanged: the same bytes")
    assert steps(frame) == {
        "robots.txt": "allows", "fetch": "HTTP 200", "parse": "utf-8", "body": "differs",
        "text": "equal",
    }  # fmt: skip
    assert frame.conclusion == "unchanged: the main text is the same; only the page's frame changed"
    assert (steps(dearer)["text"], steps(dearer)["blocks"]) == ("differs", "blocks")
    assert dearer.conclusion == "changed: blocks of main text have changed"
    assert (steps(pictured)["text"], steps(pictured)["document"]) == ("equal", "differs")
    assert (steps(spaced)["blocks"], spaced.conclusion[:10]) == ("minor", "refreshed:")
    assert pictured.conclusion.startswith("refreshed: ")
    assert db.read_bytes() == before


@needs_chromium
async def test_a_page_is_rendered_as_a_crawl_would(tmp_path: Path) -> None:
    shell = "<title>App</title><div id=app></div><noscript>Enable JavaScript.</noscript>"
    script = f"document.body.innerHTML = `{TEXT.format('3.20')}`"
    pages = {"/": Page(f"{shell}<script src=/app.js></script>"), "/app.js": Page(script)}
    async with scripted({"h": pages}) as web:
        found = await checked(web, "/", tmp_path / "no.db", browser__render="when-needed")
    assert steps(found)["render"] == "rendered"
    assert found.steps[2].why == "the browser made 2 requests"
    assert "A pot of green tea costs 3.20 today." in str(found.blocks)


async def test_the_main_text_is_shown_as_the_selectors_cut_it(tmp_path: Path) -> None:
    async with scripted({"h": {"/": Page(HEADER.format(1) + TEXT.format("3.20"))}}) as web:
        whole = await checked(web, "/", tmp_path / "no.db")
        cut = await checked(
            web, "/", tmp_path / "no.db", sites=[{"match": "*.localhost", "ignore": ["h1"]}]
        )
    texts = [(block["kind"], block["text"]) for block in whole.blocks]
    assert texts == [("heading", "Tea"), ("paragraph", "A pot of green tea costs 3.20 today.")]
    assert [block["text"] for block in cut.blocks] == ["A pot of green tea costs 3.20 today."]


async def test_what_the_store_keeps_holds_unless_other_is_tried(small: SmallStore) -> None:
    small.run(0.0)
    small.insert("site_setting", match="*.localhost", key="ignore", value='["h1"]', at=0.0)
    async with scripted({"h": {"/": Page(HEADER.format(1) + TEXT.format("3.20"))}}) as web:
        kept = await checked(web, "/", small.path)
        tried = await check(quick(), small.path, [f"{web.origin('h')}/"], 0.0, ignore=("p",))
    assert [[it["text"][:3] for it in each.blocks] for each in (kept, tried)] == [["A p"], ["Tea"]]
    assert steps(kept)["[[sites]]"] == "*.localhost"


async def test_what_alert_rules_would_find_is_told(tmp_path: Path) -> None:
    watching = {"url": "https://hooks.example/", "match": "http://h.localhost:*"}
    rules = [
        {"name": "any", **watching},
        {"name": "elsewhere", **watching, "match": "/tag/*", "appears": "tea"},
        {"name": "price", **watching, "appears": "Green TEA", "vanishes": "coffee", "below": 3},
        {"name": "seen", **watching, "within": "header", "above": 3, "number": "by *"},
        {"name": "lost", **watching, "within": ".price", "above": 3},
    ]
    async with scripted({"h": {"/": Page(HEADER.format("1,234") + TEXT.format("3.20"))}}) as web:
        found = await checked(web, "/", tmp_path / "no.db", alerts__rules=rules)
    assert [(each.name, each.answer, each.why) for each in found.steps[-3:]] == [
        ("alert price", "",
         "“Green TEA” is there, “coffee” is not there, the number is 3.2 (watched: below 3)"),
        ("alert seen", "", "the number is 1234 (watched: above 3)"),
        ("alert lost", "nothing there", "no number (watched: above 3)"),
    ]  # fmt: skip
    assert {step.name for step in found.steps[:-3]} == {"robots.txt", "fetch", "parse"}


async def test_without_a_store_a_page_is_new(tmp_path: Path) -> None:
    async with scripted({"h": {"/": Page(TEXT)}}) as web:
        found = await checked(web, "/", tmp_path / "no.db")
    assert found.conclusion.startswith("new: the store ")
    assert not (tmp_path / "no.db").exists()


@pytest.mark.parametrize(
    ("robots", "answer"),
    [(Page("User-agent: *\nDisallow: /"), "forbids"), (Page("down", 503), "unreachable")],
)
async def test_what_robots_txt_refuses_is_not_asked_for(
    tmp_path: Path, robots: Page, answer: str
) -> None:
    async with scripted({"h": {"/robots.txt": robots, "/": Page(TEXT)}}) as web:
        found = await checked(web, "/", tmp_path / "no.db")
    assert web.asked("h") == ["/robots.txt"]
    assert steps(found) == {"robots.txt": answer}
    assert found.conclusion.startswith("refused")


@pytest.mark.parametrize(
    ("page", "answer", "conclusion"),
    [
        (Page("", 404), "HTTP 404", "gone"),
        (Page("", 301, {"Location": "/there"}), "HTTP 301", "redirected"),
        (Page("oh", 500), "HTTP 500", "failed"),
    ],
)
async def test_other_answers_have_no_content_to_compare(
    tmp_path: Path, page: Page, answer: str, conclusion: str
) -> None:
    async with scripted({"h": {"/": page}}) as web:
        found = await checked(web, "/", tmp_path / "no.db")
    assert steps(found)["fetch"] == answer
    assert found.conclusion.startswith(conclusion)


async def test_binary_data_is_told_as_such(tmp_path: Path) -> None:
    async with scripted({"h": {"/": Page("\x89PNG\r\n\x1a\n" + "\0" * 99)}}) as web:
        found = await checked(web, "/", tmp_path / "no.db")
    assert steps(found)["content"] == "binary"
    assert found.conclusion == (
        "failed: a crawl would store no version, because this is not content"
    )


async def test_a_request_that_fails_is_repeated_as_in_a_crawl(tmp_path: Path) -> None:
    async with scripted({"h": {"/": Page("oh", 500)}}) as web:
        found = await checked(web, "/", tmp_path / "no.db")
    assert web.asked("h") == ["/robots.txt", "/", "/"]
    assert [step.answer for step in found.steps if step.name == "fetch"] == ["repeated", "HTTP 500"]


async def test_a_page_that_may_be_a_wall_is_told_as_doubtful(tmp_path: Path) -> None:
    lost = Page("<title>Page not found</title><h1>Page not found</h1><p>It does not exist.</p>")
    async with scripted({"h": {"/": lost}}) as web:
        found = await checked(web, "/", tmp_path / "no.db")
    assert steps(found)["content"] == "doubtful"
    [why] = [step.why for step in found.steps if step.name == "content"]
    assert "perhaps soft_404" in str(why)
    assert found.conclusion.startswith("new: ")


async def test_of_two_spellings_the_one_that_answers_is_judged(tmp_path: Path) -> None:
    async with scripted({"h": {"/": Page(TEXT)}}) as web:
        plain = f"{web.origin('h')}/"
        secure = plain.replace("http:", "https:")
        found = await check(quick(), tmp_path / "no.db", [secure, plain], time.time())
    assert found.url == plain
    assert found.blocks


async def test_a_wrong_selector_of_the_settings_is_told_with_its_site(tmp_path: Path) -> None:
    settings = quick(sites=[{"match": "example.org", "include": ["a["]}])
    with pytest.raises(CrawlError, match=r"sites.*example\.org.*'a\['"):
        await check(settings, tmp_path / "no.db", ["http://127.0.0.1:2/"], time.time())
