"""`freshet serve`, and a daemon that listens, answer a consumer in another process."""

import asyncio
import hashlib
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from scripts.synthetic_server import plain, serve
from tests.console import freshet
from tests.integration.scripted import Page, scripted
from tests.storage.versioned_store import versioned_store

COMMAND = (sys.executable, "-c", "from freshet.crawler.cli import run; run()")
LOCAL = ("--allow-private-addresses", "--delay", "0")
TOKEN = "a-token-of-some-length"


@asynccontextmanager
async def listening(*arguments: object, **environment: str) -> AsyncIterator[str]:
    """Run a verb that listens; yield its address. It ends well at SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *map(str, arguments), "--listen", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL, env={**os.environ, **environment},
    )  # fmt: skip
    assert process.stderr is not None
    said = list[bytes]()
    try:
        while not (found := re.search(rb"http://127\.0\.0\.1:\d+(?=/)", b"".join(said[-1:]))):
            said.append(await process.stderr.readline())
            assert said[-1], said
        reading = asyncio.create_task(process.stderr.read())
        yield found[0].decode()
        process.send_signal(signal.SIGTERM)
        assert (await process.wait(), TOKEN.encode() in await reading) == (0, False)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def got(url: str, **headers: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url, headers=headers) as response:
        assert response.status == 200, await response.text()
        return await response.json(content_type=None)


async def crawled(url: str, db: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "crawl", url, "--db", str(db), "--json", *LOCAL,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await process.wait() == 0


@pytest.mark.long
async def test_a_copy_stays_in_step_with_crawls_of_another_process(tmp_path: Path) -> None:
    db, copy = tmp_path / "crawl.db", dict[str, str]()
    pages = {
        "/": Page("<main><p>The start.</p><a href=/a>a</a><a href=/b>b</a></main>"),
        "/a": Page("<main><p>The first page says one thing in a sentence.</p></main>"),
        "/b": Page("<main><p>The second page will not be there for long.</p></main>"),
    }
    async with scripted({"site": pages}) as web:
        site = web.origin("site")
        await crawled(f"{site}/", db)
        async with (
            listening("serve", "--db", db) as url,
            aiohttp.ClientSession() as client,
            client.get(f"{url}/v1/changefeed?feed=continuous&include_docs=true") as feed,
        ):
            pages["/a"] = Page("<main><p>Something else altogether is written here.</p></main>")
            del pages["/b"]
            again = asyncio.create_task(crawled(f"{site}/", db))
            while not ("else" in copy.get(f"{site}/a", "") and f"{site}/b" not in copy):
                entry = json.loads(await feed.content.readline() or b"null")
                copy.pop(entry["id"], None)
                if not entry.get("deleted"):
                    copy[entry["id"]] = entry["doc"]["markdown"]
            await again
            there = (await got(f"{url}/v1/pages"))["pages"]
            assert {each["url"] for each in there if each["has_document"]} == copy.keys()
            for page, markdown in copy.items():
                document = await got(f"{url}/v1/pages/{quote(page, safe='')}")
                assert document["markdown"] == markdown
            assert (await got(f"{url}/healthz"))["status"] == "ok"


async def test_a_daemon_answers_the_same_under_the_same_token(tmp_path: Path) -> None:
    async with serve(plain(hosts=1, pages_per_host=5)) as web:
        daemon = ("daemon", web.url("h1"), "--db", tmp_path / "crawl.db", "--budget", "100000/hour")
        async with listening(
            *daemon, "--verbose", "--log-format", "json", *LOCAL, FRESHET_OPERATION__TOKEN=TOKEN
        ) as url:
            given = {"Authorization": f"Bearer {TOKEN}"}
            seen, since = set[str](), "0"
            while len(seen) < 5:
                # The store may not be there yet.
                path = f"{url}/v1/changefeed?feed=longpoll&include_docs=true&since={since}"
                async with (
                    aiohttp.ClientSession(headers=given) as client,
                    client.get(path) as response,
                ):
                    if response.status == 503:
                        await asyncio.sleep(0.05)
                        continue
                    told = json.loads(await response.read())
                seen |= {each["doc"]["url"] for each in told["results"]}
                since = told["last_seq"]
            assert (await got(f"{url}/healthz"))["state"] == "fetching"
            async with aiohttp.ClientSession() as client, client.get(f"{url}/metrics") as response:
                assert response.status == 401


def refused(*words: object) -> tuple[int, str]:
    result = freshet("serve", *words)
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


def test_what_cannot_be_served_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, line = refused("--db", tmp_path / "none.db")
    assert (code, "none.db" in line) == (1, True)
    code, line = refused("--db", tmp_path / "none.db", "--listen", "0.0.0.0:0")
    assert (code, "set operation.token as well" in line) == (2, True)
    versioned_store(tmp_path / "crawl.db", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        code, line = refused("--db", tmp_path / "crawl.db", "--listen", place)
    assert (code, f"{place}: cannot listen there: Address already in use" in line) == (1, True)
    # With a token a name that was mistyped makes no store, either.
    monkeypatch.setenv("FRESHET_OPERATION__TOKEN", TOKEN)
    code, line = refused("--db", tmp_path / "none.db")
    assert (code, "none.db" in line) == (1, True)
    assert not (tmp_path / "none.db").exists()
    monkeypatch.setenv("FRESHET_OPERATION__TOKEN", "short")
    code, line = refused("--db", tmp_path / "crawl.db")
    assert (code, "at least 16 letters" in line, "short" in line) == (1, True, False)


async def test_a_login_link_makes_a_token_and_counts_once(tmp_path: Path) -> None:
    file = tmp_path / "freshet.toml"
    file.write_text("# ours\n[crawl]\nmax_pages = 5\n")
    words = ("serve", "--login", "--config", file, "--db", tmp_path / "new.db")
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *map(str, words), "--listen", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        said = [(await process.stderr.readline()).decode() for _ in range(4)]
        (token,) = re.findall(r"^token: ([0-9a-f]{64}) ", said[0])
        assert said[1].startswith(f"store: {tmp_path / 'new.db'} is new and empty")
        (link,) = re.findall(r"^log in once: (http://127\.0\.0\.1:\d+/login\?once=\S+) ", said[3])
        assert token not in file.read_text()
        assert f"sha256:{hashlib.sha256(token.encode()).hexdigest()}" in file.read_text()
        assert file.read_text().startswith("# ours\n[crawl]\nmax_pages = 5\n")
        url, _, key = link.partition("/login?once=")
        given = {"Authorization": f"Bearer {token}"}
        assert (await got(f"{url}/v1/pages", **given))["pages"] == []
        async with aiohttp.ClientSession(headers={"Origin": url, "Accept": "text/html"}) as client:
            async with client.get(link) as response:
                assert f'value="{key}"' in await response.text()
            answers = list[int]()
            for _ in range(2):
                async with client.post(
                    f"{url}/login", data={"token": key}, allow_redirects=False
                ) as response:
                    answers.append(response.status)
            assert answers == [303, 403]
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    async with listening("serve", "--config", file, "--db", tmp_path / "new.db") as url:
        assert (await got(f"{url}/v1/pages", **given))["pages"] == []
