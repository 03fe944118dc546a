"""Assistants read a store by `freshet mcp`: the SDK's own client asks, by both transports."""

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.console import freshet
from tests.integration.scripted import Page
from tests.integration.test_changefeed import EDITED, Site, site
from tests.variants import first

__all__ = ["site"]

FRESHET = str(Path(sys.executable).with_name("freshet"))
TOKEN = "0123456789abcdef0123"
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
)


def by_stdio(site: Site, *words: str) -> Client:
    arguments = ["mcp", "--db", str(site.db), *words]
    return Client(StdioServerParameters(command=FRESHET, args=arguments, cwd=site.db.parent))


@asynccontextmanager
async def by_http(
    site: Site, *words: str, token: str = "", proxies: str = "[]"
) -> AsyncIterator[str]:
    """Yield the address of a server over HTTP."""
    told = site.db.with_name("freshet.toml")
    said = f'[operation]\ntoken = "{token}"\ntrusted_proxies = {proxies}\n'
    told.write_text(said, "utf-8")
    words = ("mcp", "--db", str(site.db), "--listen", "127.0.0.1:0", *words)
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        FRESHET, *words, cwd=site.db.parent, stderr=pipe, stdout=pipe
    )
    try:
        assert server.stderr is not None
        line = (await server.stderr.readline()).decode()
        assert line.startswith("listening:"), line
        yield line.split()[1]
    finally:
        server.terminate()
        await server.communicate()


async def asked(client: Client, tool: str, **given: object) -> Any:
    found = await client.call_tool(tool, given)
    assert not found.is_error, found.content
    assert found.structured_content == json.loads(text_of(found))
    return found.structured_content


async def refused(client: Client, tool: str, **given: object) -> str:
    found = await client.call_tool(tool, given)
    assert found.is_error
    return text_of(found)


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


async def test_each_tool_says_briefly_what_it_returns(site: Site) -> None:
    async with by_stdio(site) as client:
        tools = (await client.list_tools()).tools
        assert [each.name for each in tools] == [
            "search", "read_page", "read_chunks", "what_changed", "diff", "history", "next_visit",
        ]  # fmt: skip
        # Each is told briefly, with what it returns, and is known to change nothing.
        for each in tools:
            assert each.description is not None
            assert each.description.startswith("Return ")
            assert len(each.description) < 300
            assert each.annotations is not None
            assert each.annotations.read_only_hint


async def test_an_assistant_learns_what_changed(site: Site) -> None:
    site.pages["/edited"] = EDITED
    del site.pages["/leaving"]
    async with by_stdio(site) as client:
        found = await asked(client, "what_changed")
        assert {it["kind"] for it in found["changes"]} == {"new"}
        assert (len(found["changes"]), found["more"]) == (5, False)
        before = found["cursor"]
        await site.crawl()
        changed = await asked(client, "what_changed", cursor=before)
        told = {it["url"].removeprefix(site.url("")): it["kind"] for it in changed["changes"]}
        assert told == {"/edited": "changed", "/leaving": "gone"}
        one = await asked(client, "what_changed", cursor=before, limit=1)
        other = await asked(client, "what_changed", cursor=one["cursor"], limit=1)
        assert (one["more"], other["more"]) == (True, False)
        assert [*one["changes"], *other["changes"]] == changed["changes"]


async def test_an_assistant_reads_a_store(site: Site) -> None:
    site.pages["/edited"] = EDITED
    await site.crawl()
    await site.typed("search", "--index", "on", "rivers")
    async with by_stdio(site) as client:
        read = await asked(client, "read_page", url=site.url("/edited"))
        assert "A new sentence stands here" in read["markdown"]
        assert (read["version"], read["next_offset"], read["missing"]) == (2, None, None)
        chunks = await asked(client, "read_chunks", url=site.url("/edited"), limit=1)
        assert chunks["next"] is None
        assert chunks["chunks"][0]["url"].startswith(site.url("/edited#"))
        differs = await asked(client, "diff", url=site.url("/edited"))
        assert "{+ A new sentence stands here" in differs["blocks"][0]["text"]
        visits = await asked(client, "history", url=site.url("/edited"))
        assert [it["kind"] for it in visits["visits"]] == ["changed", "new"]
        outlook = await asked(client, "next_visit", url=site.url("/edited"))
        assert "how often it changes" in " ".join(outlook["next_visit"])
        hits = await asked(client, "search", query="rivers meet")
        assert [it["url"] for it in hits["results"]] == [site.url("/")]


async def test_a_long_page_is_read_in_parts(site: Site) -> None:
    words = "".join(f"<h2>Part {n}</h2><p>{f'word{n} ' * 150}</p>" for n in range(40))
    site.pages["/kept"] = Page(f"<title>long</title><h1>long</h1>{words}")
    await site.crawl()
    url, texts = site.url("/kept"), list[str]()
    offset: int | None = 0
    first: int | None = 0
    async with by_stdio(site) as client:
        while offset is not None:
            part = await asked(client, "read_page", url=url, offset=offset)
            texts.append(part["markdown"])
            offset = part["next_offset"]
        passages = list[str]()
        while first is not None:
            part = await asked(client, "read_chunks", url=url, first=first)
            passages += [it["id"] for it in part["chunks"]]
            first = part["next"]
        old = await asked(client, "read_page", url=url, version="1")
        assert "long" not in old["title"]
        assert "up to 20" in str((await client.list_tools()).tools[2].input_schema)
        assert "less than or equal to 20" in await refused(client, "read_chunks", url=url, limit=99)
    assert max(map(len, texts)) <= 10_000
    whole = (await site.typed("text", url)).stdout
    assert "".join(texts) == whole.removesuffix("\n")
    lines = (await site.typed("text", url, "--chunks")).stdout.splitlines()
    assert passages == [json.loads(line)["id"] for line in lines]


async def test_errors_are_told_in_a_line(site: Site) -> None:
    async with by_stdio(site) as client:
        why = await refused(client, "read_page", url=site.url("/kep"))
        assert f"is not known; the nearest on that host: {site.url('/kept')}" in why
        assert "has no search index" in await refused(client, "search", query="x")
        assert "\n" not in await refused(client, "what_changed", since="yesterday?")
        assert "\n" not in await refused(client, "what_changed", cursor="no cursor")
        assert "\n" not in await refused(client, "history", url="::")
        with closing(sqlite3.connect(site.db)) as db:
            cursor = (await asked(client, "what_changed"))["cursor"]
            db.execute("UPDATE changefeed SET epoch = '0123456789abcdef'")
            db.commit()
        assert "ask without a cursor" in await refused(client, "what_changed", cursor=cursor)
        assert "Unknown tool" in await refused(client, "visit_now", url=site.url("/kept"))


async def test_with_actions_a_visit_is_asked_for_and_a_site_is_added(site: Site) -> None:
    sites = site.db.with_name("sites.txt")
    async with by_stdio(site, "--allow-actions", "--sites", str(sites)) as client:
        noted = await asked(client, "visit_now", url=site.url("/kept"))
        assert noted["url"] == site.url("/kept")
        assert "is not known" in await refused(client, "visit_now", url=site.url("/no"))
        added = await asked(client, "add_site", url="https://docs.example.org/guide/")
        assert added["added"]
        assert "no daemon is running" in added["daemon"]
        again = await asked(client, "add_site", url="docs.example.org/guide/")
        assert not again["added"]
        await asked(client, "add_site", url="https://other.example/")
        assert "\n" not in await refused(client, "add_site", url="https:// no")
    assert sites.read_text("utf-8").split() == [
        "https://docs.example.org/guide/", "https://other.example/",
    ]  # fmt: skip
    with closing(sqlite3.connect(site.db)) as db:
        kept = db.execute("SELECT match, key FROM site_setting").fetchall()
    assert kept == [(site.url("/kept"), "visit")]
    async with by_stdio(site, "--allow-actions") as client:
        # Without a list there is nothing to add to.
        names = [each.name for each in (await client.list_tools()).tools]
    assert names[-1] == "visit_now"


async def test_over_http_the_token_opens(site: Site) -> None:
    async with by_http(site, "--allow-actions", token=TOKEN) as address:
        async with httpx2.AsyncClient() as plain:
            for headers in ({}, {"Authorization": "Bearer another-token-than-that"}):
                answer = await plain.post(address, json={}, headers=headers)
                assert answer.status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            assert len((await asked(client, "what_changed"))["changes"]) == 5
            await asked(client, "visit_now", url=site.url("/kept"))


async def test_over_http_nobody_guesses_the_token(site: Site) -> None:
    async with by_http(site, token=TOKEN) as address, httpx2.AsyncClient() as plain:
        wrong = [{"Authorization": f"Bearer wrong-{n}"} for n in range(8)]
        answers = [await plain.post(address, json={}, headers=each) for each in wrong]
        assert [each.status_code for each in answers] == [401] * 5 + [429] * 3
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await plain.post(address, json={}, headers=right)).status_code == 429


@pytest.mark.parametrize(
    ("proxies", "expected"), [('["127.0.0.1/32"]', [401] * 8), ("[]", [401] * 5 + [429] * 3)]
)
async def test_over_http_a_trusted_proxy_names_who_guesses(
    site: Site, proxies: str, expected: list[int]
) -> None:
    async with (
        by_http(site, token=TOKEN, proxies=proxies) as address, httpx2.AsyncClient() as plain,
    ):  # fmt: skip
        answers = [
            await plain.post(
                address, json={},
                headers={"Authorization": f"Bearer {n}", "X-Forwarded-For": f"10.0.0.{n}"},
            )
            for n in range(8)
        ]  # fmt: skip
        assert [each.status_code for each in answers] == expected


@pytest.mark.parametrize("transport", first(1, ["http with a client", "stdio", "http"]))
async def test_ctrl_c_ends_it_in_one_line(site: Site, transport: str) -> None:
    words = [] if transport == "stdio" else ["--listen", "127.0.0.1:0"]
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        FRESHET, "mcp", "--db", str(site.db), *words, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    async with httpx2.AsyncClient() as plain:
        if words:
            line = ""
            while not line.startswith("listening:"):
                line = (await server.stderr.readline()).decode()
                assert line, "it has ended"
            address = line.split()[1]
            assert (await plain.post(address, json={})).status_code >= 400
            if transport == "http":
                await plain.aclose()
        else:
            server.stdin.write(INITIALIZE)
            assert b'"result"' in await server.stdout.readline()
        server.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(server.communicate(), 30)
    assert (server.returncode, out) == (130, b"")
    assert err.decode().splitlines() == ["freshet: interrupted"]


async def test_over_http_without_a_token_only_this_machine_reads(site: Site) -> None:
    async with by_http(site) as address:
        async with Client(address) as client:
            assert len((await asked(client, "what_changed"))["changes"]) == 5
        async with httpx2.AsyncClient() as plain:
            # As of a page in a browser that was led here under another name.
            answer = await plain.post(address, json={}, headers={"Host": "evil.example"})
            assert answer.status_code == 421


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--listen", "127.0.0.1:0", "--allow-actions"], 1, "needs operation.token"),
        (["--listen", "0.0.0.0:0"], 2, "should be a loopback address"),
        (["--sites", "s.txt"], 1, "with --allow-actions only"),
        (["--db", "no.db"], 1, "no.db"),
    ],
)
async def test_what_cannot_be_served_is_told_in_one_line(
    site: Site, words: list[str], code: int, message: str
) -> None:
    words = [*words, *(() if "--db" in words else ("--db", str(site.db)))]
    result = await asyncio.to_thread(freshet, "mcp", *words)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.output
    assert message in result.stderr
