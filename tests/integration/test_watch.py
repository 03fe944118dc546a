"""`freshet watch` on loopback: the page is read, settings are written, and a daemon goes on."""

import asyncio
import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from freshet.crawler.extensions.alerts.cli.watch import WatchWish, look
from tests.integration.quick import QUICK, quick
from tests.integration.scripted import Page, scripted
from tests.storage.small_store import rows

NOTHING = WatchWish(None, None, None, None)
DATA = '<script type="application/ld+json">{{"offers": {{"price": "{0}"}}}}</script>'
SHOP = (
    "<title>Tea</title>" + DATA + "<header>Cart: 0.00 €</header><main><h1>Green tea</h1>"
    '<p class="price">{0} €</p><p>Loose leaves, harvested in spring.</p>'
    '<p class="also">Black tea 9.99 €</p></main>'
)


async def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    program = "from freshet.crawler.cli import run; run()"
    said = {f"FRESHET_{k.upper().replace('.', '__')}": json.dumps(v) for k, v in QUICK.items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *arguments),
        cwd=folder,
        env=os.environ | said | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_price_is_found_written_visited_and_told_when_it_falls(tmp_path: Path) -> None:
    pages = {"/tea": Page(SHOP.format("12.50"))}
    (tmp_path / "freshet.toml").write_text("# mine\n[crawl]\nmax_depth = 3  # enough\n")
    async with scripted({"shop": pages}) as web:
        url = f"{web.origin('shop')}/tea"
        code, out, err = await run(tmp_path, "watch", url, "--below", "10")
        assert code == 0, err
        assert "12.5 (“12.50 €” in p.price)" in out
        assert "Watched" in out
        text = (tmp_path / "freshet.toml").read_text()
        assert text.startswith("# mine\n[crawl]\nmax_depth = 3  # enough\n")
        settings = tomllib.loads(text)
        assert settings["sites"][0]["include"] == ["p.price"]
        assert rows(
            tmp_path / "crawl.db", "SELECT url, last_kind FROM page WHERE role = 'page'"
        ) == [(url, "new")]
        again = await run(tmp_path, "watch", url)
        assert (again[0], "change it in the settings file" in again[2]) == (1, True)
        assert (tmp_path / "freshet.toml").read_text() == text
        pages["/tea"] = Page(SHOP.format("11.00"))
        assert '"alert"' not in (await run(tmp_path, "crawl"))[2]
        pages["/tea"] = Page(SHOP.format("9.50"))
        lines = (await run(tmp_path, "crawl"))[2].splitlines()
    (alert,) = (line for line in map(json.loads, lines) if line["message"] == "alert")
    assert "11 → 9.5, below 10" in alert["text"]


@pytest.mark.long
async def test_a_site_is_crawled_and_its_new_pages_are_told(tmp_path: Path) -> None:
    pages = {"/": Page("<main><p>The laws of the land.</p><a href=/1>One</a></main>")}
    pages["/1"] = Page("<main><p>The first law is about taxes and fees.</p></main>")
    async with scripted({"law": pages}) as web:
        code, out, err = await run(tmp_path, "watch", f"{web.origin('law')}/*", "--daily", "--json")
        assert code == 0, err
        (rule,) = json.loads(out)["alerts.rules"]
        assert (rule["match"], rule["mode"]) == ([f"{web.origin('law')}/*"], "daily")
        pages["/"] = Page(
            "<main><p>The laws of the land.</p><a href=/1>1</a><a href=/2>2</a></main>"
        )
        pages["/2"] = Page("<main><p>The second law is about roads and bridges.</p></main>")
        assert (await run(tmp_path, "crawl"))[0] == 0
    waiting = rows(tmp_path / "crawl.db", "SELECT count(*) FROM page WHERE role = 'page'")
    assert waiting == [(3,)]


async def test_what_is_offered_is_what_a_rule_reads_there(tmp_path: Path) -> None:
    hidden = '<p class="a">2 for 30.00 €</p><p class="b" hidden>5.00 €</p><nav><b>1.00 €</b></nav>'
    async with scripted({"shop": {"/": Page(f"<main>{hidden}<p>Some words.</p></main>")}}) as web:
        page = await look(quick(), f"{web.origin('shop')}/", NOTHING)
    assert (page.offers[0].value, page.offers[0].number) == (30.0, "2 for *")


async def test_redirects_lead_to_the_page_that_is_watched(tmp_path: Path) -> None:
    pages = {"/old": Page("", 301, {"Location": "/new"}), "/new": Page(SHOP.format("3"))}
    async with scripted({"shop": pages}) as web:
        page = await look(quick(), f"{web.origin('shop')}/old", NOTHING)
        assert page.url == f"{web.origin('shop')}/new"
    assert page.stated == (3.0,)
