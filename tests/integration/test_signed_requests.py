"""Signed requests (Web Bot Auth), against servers on loopback that verify them."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp
import pytest

from tests.crawler.extensions.identity.verifier import verify_directory, verify_request
from tests.integration.hubs import free_port
from tests.integration.scripted import Page, Scripted, scripted
from tests.integration.test_commands import LOCAL, TEXT, XML, Shell, links, page

AGENT = "https://bot.example.org/.well-known/http-message-signatures-directory"
SIGNING = f'[identity]\nsign = true\nkey = "key.json"\ndirectory = "{AGENT}"\n'
FIELDS = {"Signature", "Signature-Input", "Signature-Agent", "From"}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def with_key(shell: Shell, settings: str) -> dict[str, bytes]:
    """Write the settings, make a key, and return what is published."""
    (shell.directory / "freshet.toml").write_text(settings)
    assert (await shell("key", "new"))[0] == 0
    return {AGENT: (await shell("key", "show", "--directory"))[1].encode()}


def verified(web: Scripted, sent: Mapping[str, str], published: Mapping[str, bytes]) -> str:
    return verify_request(sent, sent["Host"], published, time.time()).keyid


def site(origin: str) -> dict[str, Page]:
    return {
        "/robots.txt": Page(f"Sitemap: {{origin:{origin}}}/map.xml\n", headers=TEXT),
        "/map.xml": Page(f"<urlset><url><loc>{{origin:{origin}}}/1</loc></url></urlset>", 200, XML),
        "/": page(0, links("/1", "/moved")),
        "/1": page(1),
        "/moved": Page("", 301, {"Location": "{origin:b}/2"}),
    }


async def test_all_requests_are_signed_each_for_the_host_that_gets_it(shell: Shell) -> None:
    published = await with_key(shell, SIGNING)
    hosts = {"a": site("a"), "b": {"/2": page(2)}}
    async with scripted(hosts) as web:
        report = await shell.json("crawl", f"{web.origin('a')}/", f"{web.origin('b')}/2", *LOCAL)
        assert report["pages"] >= 3
        assert {"/robots.txt", "/map.xml", "/", "/1", "/moved"} <= set(web.asked("a"))
        assert {"/robots.txt", "/2"} <= set(web.asked("b"))
        assert {verified(web, each, published) for each in web.sent} == {
            json.loads(published[AGENT])["keys"][0]["kid"]
        }


async def test_a_site_may_be_left_out_or_alone_be_signed_for(shell: Shell) -> None:
    one = '[[sites]]\nmatch = "{}.localhost"\nsign = {}\n'
    hosts = {"a": site("a"), "b": {"/2": page(2)}}
    published = await with_key(shell, SIGNING)
    for settings, signed in (
        (SIGNING + one.format("b", "false"), {"a"}),
        (SIGNING.replace("true", "false") + one.format("b", "true"), {"b"}),
    ):
        (shell.directory / "freshet.toml").write_text(settings)
        async with scripted(hosts) as web:
            words = (f"{web.origin('a')}/", f"{web.origin('b')}/2", *LOCAL)
            assert (await shell("crawl", *words, "--db", f"{min(signed)}.db"))[0] == 0
            asked = list(zip(web.log, web.sent, strict=True))
        by_host = {name: [sent for (host, _), sent in asked if host == name] for name in ("a", "b")}
        assert all(by_host.values())
        for name, sent in by_host.items():
            if name in signed:
                assert all(verified(web, each, published) for each in sent)
            else:
                assert not [each for each in sent if FIELDS & set(each)]


async def test_without_a_setting_no_host_is_told_more(shell: Shell) -> None:
    # Whether or not there is a key.
    await with_key(shell, SIGNING.replace("true", "false"))
    async with scripted({"a": site("a"), "b": {}}) as web:
        assert (await shell("crawl", f"{web.origin('a')}/", *LOCAL))[0] == 0
        check = ("check", f"{web.origin('a')}/", "--allow-private-addresses")
        assert (await shell(*check))[0] == 0
        assert len(web.sent) > 5
        assert not [each for each in web.sent if FIELDS & set(each)]


async def test_from_and_signatures_are_sent_by_check_too(shell: Shell) -> None:
    published = await with_key(shell, f'{SIGNING}from_address = "bot@example.org"\n')
    async with scripted({"a": site("a"), "b": {}}) as web:
        check = ("check", f"{web.origin('a')}/", "--allow-private-addresses")
        assert (await shell(*check))[0] == 0
        assert len(web.sent) >= 2
        assert all(verified(web, each, published) for each in web.sent)
        assert {each["From"] for each in web.sent} == {"bot@example.org"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (SIGNING, "key.json: there is no key; `freshet key new` makes one"),
        ("[identity]\nsign = true\n", "identity.directory: requests are signed only with the URL"),
        ('[[sites]]\nmatch = "a.localhost"\nsign = true\n', "identity.directory: requests are"),
    ],
)
async def test_what_is_missing_is_told_in_one_line_before_a_request(
    shell: Shell, settings: str, told: str
) -> None:
    (shell.directory / "freshet.toml").write_text(settings)
    async with scripted({"a": {"/": page(0)}}) as web:
        for verb in ("crawl", "check"):
            local = LOCAL if verb == "crawl" else ("--allow-private-addresses",)
            code, _, said = await shell(verb, f"{web.origin('a')}/", *local)
            assert (code, said.count("\n")) == (1, 1), said
            assert told in said
        assert web.log == []


async def test_without_the_extra_one_line_says_what_to_install(shell: Shell) -> None:
    await with_key(shell, SIGNING)
    before = "import sys; sys.modules['cryptography'] = None"
    async with scripted({"a": {"/": page(0)}}) as web:
        for words in (("crawl", f"{web.origin('a')}/", *LOCAL), ("key", "show"), ("key", "new")):
            code, _, said = await shell(*words, before=before)
            assert (code, said.count("\n")) == (1, 1), said
            assert "signing requests needs the extra 'identity'" in said
        assert web.log == []


async def test_the_keys_are_served_signed_and_without_the_token(shell: Shell) -> None:
    token = "a-token-of-a-server"
    settings = f'[operation]\ntoken = "{token}"\nhost_names = ["bot.example.org"]\n{SIGNING}'
    published = await with_key(shell, settings)
    async with scripted({"a": {"/": page(0)}}) as web:
        assert (await shell("crawl", f"{web.origin('a')}/", *LOCAL))[0] == 0
    port = free_port()
    serving = await shell.start("serve", "--listen", f"127.0.0.1:{port}")
    try:
        assert serving.stderr is not None
        assert b"listening" in await asyncio.wait_for(serving.stderr.readline(), 30)
        url = f"http://127.0.0.1:{port}/.well-known/http-message-signatures-directory"
        host = {"Host": "bot.example.org", "Accept-Encoding": "gzip"}
        async with aiohttp.ClientSession() as verifier:
            async with verifier.get(url, headers=host) as answer:
                body, fields = await answer.read(), answer.headers
            (shell.directory / "key.json").unlink()
            async with verifier.get(url, headers=host) as answer:
                refused = answer.status, await answer.text()
    finally:
        serving.terminate()
        _, logged = await serving.communicate()
    assert body == published[AGENT].rstrip()
    assert fields["Content-Type"] == "application/http-message-signatures-directory+json"
    [key] = json.loads(body)["keys"]
    assert verify_directory(body, fields, "bot.example.org", time.time()) == [key["kid"]]
    assert "d" not in key
    assert refused[0] == 503
    # Strangers learn no path.
    assert "key.json" not in refused[1]
    assert b"key.json: there is no key" in logged


@pytest.mark.long
async def test_a_daemon_takes_a_rotated_key_over_when_it_reloads(shell: Shell) -> None:
    published = await with_key(shell, SIGNING)
    old = json.loads(published[AGENT])["keys"][0]["kid"]
    site = {"/": page(0)}
    async with scripted({"a": site}) as web:
        words = ("daemon", f"{web.origin('a')}/", *LOCAL, "--budget", "1000000/day")
        daemon = await shell.start(*words, "--time-limit", "60")
        try:
            await _until(lambda: len(web.sent) > 3)
            assert (await shell("key", "rotate", "--after", "0", "--keep", "1"))[0] == 0
            both = {AGENT: (await shell("key", "show", "--directory"))[1].encode()}
            assert (await shell("reload"))[0] == 0
            before = len(web.sent)
            await _until(lambda: verified(web, web.sent[-1], both) != old)
        finally:
            daemon.terminate()
            await daemon.communicate()
        assert {verified(web, each, both) for each in web.sent[:4]} == {old}
        assert {verified(web, each, both) for each in web.sent} == {
            it["kid"] for it in json.loads(both[AGENT])["keys"]
        }, before


async def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError
