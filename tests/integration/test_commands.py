"""Commands in processes of their own, against sites on loopback: what is told, read and sent."""

import asyncio
import json
import os
import re
import socket
import ssl
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.console import unix
from tests.integration.hubs import free_port
from tests.integration.scripted import Page, scripted

PROGRAM = "from freshet.crawler.cli import run; run()"
LOCAL = ("--allow-private-addresses", "--delay", "0", "--json")
CERTIFICATE = Path(__file__).parents[1] / "crawler" / "fetch" / "data" / "loopback.pem"
XML = {"Content-Type": "application/xml"}
TEXT = {"Content-Type": "text/plain"}
#: Pages that are alike would be taken for error pages.
WORDS = (
    "The first stone lies where two rivers meet and nobody has moved it.",
    "A mill once ground rye beside the weir until the flood took its wheel.",
    "Fishermen mend their nets on the quay while gulls quarrel over the bait.",
    "Larches climb the slope behind the chapel and shed their needles in autumn.",
    "Miners left their lamps along the gallery when the seam gave out at last.",
)


def page(number: int, more: str = "", head: str = "") -> Page:
    text = f"<h1>Page {number}</h1><p>{WORDS[number % 5]} {number}</p>{more}"
    return Page(f"<title>Page {number}</title>{head}<main>{text}</main>")


def links(*targets: str) -> str:
    return " ".join(f'<a href="{target}">Next</a>' for target in targets)


@dataclass(slots=True)
class Shell:
    """A directory where commands are typed: exit code, standard output and standard error."""

    directory: Path

    async def start(self, *words: object, before: str = "") -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"{before}\n{PROGRAM}", *map(str, words), cwd=self.directory,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def __call__(self, *words: object, before: str = "") -> tuple[int | None, str, str]:
        process = await self.start(*words, before=before)
        stdout, stderr = await process.communicate()
        return process.returncode, stdout.decode(), stderr.decode()

    async def json(self, *words: object, before: str = "") -> Any:
        _, stdout, stderr = await self(*words, before=before)
        assert stdout, stderr
        return json.loads(stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.long
async def test_what_sites_say_in_odd_ways_is_read(shell: Shell) -> None:
    many = [f"/{n}" for n in range(1, 15)]
    closed = "User-agent: *\nDisallow: /closed\n".encode("utf-16")
    guid = "<rss version='2.0'><channel><title>F</title><item><guid>{origin:b}/item</guid></item>"
    captcha = '<meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=%2Fcaptcha">'
    hosts = {
        "a": {"/robots.txt": Page(closed, headers=TEXT), "/": page(0, links("/closed", "/open"))},
        "b": {
            "/robots.txt": Page("Sitemap: /map.xml\n", headers=TEXT),
            "/map.xml": Page("<urlset><url><loc>{origin:b}/listed</loc></url></urlset>", 200, XML),
            "/": page(1, links("/feed", "/captcha")),
            "/feed": Page(guid, headers={"Content-Type": "application/rss+xml"}),
            "/captcha": Page(f"<html><head>{captcha}</head></html>", 202),
        },
        "c": {"/": page(2, links(*many))}
        | {each: Page("", 500) if each in many[6:10] else page(int(each[1:])) for each in many},
    }
    (shell.directory / "freshet.toml").write_text("[politeness]\nback_off_initial_s = 0.5\n")
    async with scripted(hosts) as web:
        report = await shell.json("crawl", f"{web.origin('a')}/", f"{web.origin('b')}/", *LOCAL)
        await shell("crawl", f"{web.origin('c')}/", "--db", "c.db", *LOCAL, "--patience", "1")
    assert {"/closed", "/open"} & set(web.asked("a")) == {"/open"}
    assert {"/listed", "/item"} <= set(web.asked("b"))
    assert not [each for each in web.asked("b") if "sgcaptcha" in each]
    assert report["refused_by_robots"] == 1
    # Four dead URLs in a row hold up none of the others.
    assert set(web.asked("c")) > set(many)


@pytest.mark.long
async def test_counts_agree_and_noise_pushes_no_version_out(shell: Shell) -> None:
    (shell.directory / "freshet.toml").write_text("[store]\nbodies_per_page = 2\n")
    listed = Page("<urlset><url><loc>{origin:h}/told</loc></url></urlset>", headers=XML)
    site = {"/robots.txt": Page("Sitemap: {origin:h}/map.xml\n", headers=TEXT), "/map.xml": listed}
    async with scripted({"h": site}) as web:
        for visit, stand in enumerate(("Open daily", *["Closed for good"] * 3)):
            site["/"] = page(0, f"<p>{stand}</p><p>Visitors: {visit}</p>")
            site["/told"] = page(1, f"<p>Updated over {visit + 2} weeks ago</p>")
            report = await shell.json("crawl", f"{web.origin('h')}/", *LOCAL)
            assert (report["changed"], report["pages"]) == (visit == 1, 2)
        url = f"{web.origin('h')}/"
    status, changes = await shell.json("status", "--json"), await shell.json("changes", "--json")
    assert status["last_run"]["observations"] == {"unchanged": 2}
    assert changes["changes"][0]["at"].endswith("Z")
    await shell("gc")
    found = await shell.json("diff", url, "--json")
    assert [each["text"] for each in found["blocks"]] == ["Open daily", "Closed for good"]
    assert (found["before"]["number"], found["after"]["number"]) == (1, 2)


def hidden(address: str, key: int) -> str:
    """An e-mail address as Cloudflare hides it, with a key of each answer."""
    coded = bytes((key, *(key ^ each for each in address.encode()))).hex()
    return f"<i data-cfemail={coded}>[email&#160;protected]</i>"


@pytest.mark.long
async def test_terms_whose_addresses_are_hidden_or_shown_have_not_changed(shell: Shell) -> None:
    site = {"/": page(0)}
    addresses = "<i>legal@h.example</i>", hidden("legal@h.example", 17), hidden("dpo@h.example", 23)
    changed = []
    async with scripted({"h": site}) as web:
        for hours, address in enumerate(addresses, 2):
            site["/"] = page(0, f"<p>Write to {address}.</p><p>Updated {hours} hours ago</p>")
            changed.append((await shell.json("crawl", f"{web.origin('h')}/", *LOCAL))["changed"])
    assert changed == [0, 0, 1]


LONG = "".join(
    f"<p>Sentence {n} of the article says a lot of what it is about.</p>" for n in range(9)
)
#: Hebrew that nobody declares.
SAID = "ירושלים היא עיר הבירה של מדינת ישראל והעיר הגדולה ביותר בה. העיר נמצאת בהרי יהודה."


async def test_main_text_and_encoding_are_those_that_a_reader_sees(shell: Shell) -> None:
    around = "<nav><p>Home</p></nav><div>A few words around it.</div>"
    more = "<div class=newsletter><p>Subscribe to our newsletter</p></div>"
    site = {
        "/hidden": Page(f"<body>{around}<div aria-hidden=true>{LONG}</div>"),
        "/frame": Page(f"<body>{around}<div class=sidebar-container>{LONG}</div>{more}"),
        "/said": Page(
            f"<title>t</title><p>{SAID}</p>".encode("cp1255"), headers={"Content-Type": "text/html"}
        ),
    }
    async with scripted({"h": site}) as web:
        shown = {}
        for path in site:
            options = ("--json", "--allow-private-addresses")
            found = await shell.json("check", web.origin("h") + path, *options)
            shown[path] = [block["text"] for block in found["blocks"]]
    for path in ("/hidden", "/frame"):
        assert sum("Sentence" in text for text in shown[path]) == 9
    assert not any("newsletter" in text for text in shown["/frame"])
    assert shown["/said"] == [SAID]


async def test_what_failed_and_how_to_go_on_is_one_line(shell: Shell) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    async with scripted({"h": {"/": page(0)}}, tls) as web:
        bare = web.origin("h").removeprefix("https://")
        code, stdout, _ = await shell("crawl", bare, "--allow-private-addresses")
        assert (code, web.log) == (1, [])
        assert f"name http://{bare}/ to crawl it without https" in stdout
    code, stdout, stderr = await shell("crawl", "http://127.0.0.1:9/")
    assert (code, "--allow-private-addresses" in stdout + stderr) == (1, True)


#: A clock that is ten years ahead.
AHEAD = "import time; real = time.time; time.time = lambda: real() + 315e6"


@pytest.mark.long
async def test_a_clock_that_was_ahead_once_does_not_date_later_runs(shell: Shell) -> None:
    async with scripted({"h": {"/": page(0)}}) as web:
        for before in (AHEAD, ""):
            await shell("crawl", f"{web.origin('h')}/", *LOCAL, before=before)
        found = await shell.json("history", f"{web.origin('h')}/", "--json")
    assert abs(unix(found["observations"][-1]["at"]) - time.time()) < 3_600


#: A clock that is set to the next day once there is a file of this name.
SET = """import os, time; real = time.time
time.time = lambda: real() + 86_400 * os.path.exists("set")"""


@pytest.mark.long
async def test_a_clock_that_is_set_after_the_start_dates_what_follows(shell: Shell) -> None:
    site = {"/": page(0, links("/1", "/2")), "/1": page(1), "/2": page(2)}
    async with scripted({"h": site}) as web:
        url = f"{web.origin('h')}/"
        crawl = await shell.start("crawl", url, *LOCAL, "--delay", "2", before=SET)
        while not web.asked("h"):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
        (shell.directory / "set").touch()
        _, said = await crawl.communicate()
        found = await shell.json("history", url + web.asked("h")[-1][1:], "--json")
    assert abs(unix(found["observations"][-1]["at"]) - time.time() - 86_400) < 3_600
    assert b"clock was set ahead by 24.0 h" in said


async def test_a_warning_stays_on_the_terminal_and_the_progress_tells_what_is_left(
    shell: Shell,
) -> None:
    dated = "<urlset><url><loc>{origin:h}/1</loc><lastmod>2099-01-01</lastmod></url></urlset>"
    site = {"/robots.txt": Page("Sitemap: {origin:h}/map.xml\n"), "/map.xml": Page(dated, 200, XML)}
    site |= {"/": page(0, links("/1", "/2", "/3"))} | {f"/{n}": page(n) for n in range(1, 4)}
    async with scripted({"h": site}) as web:
        terminal, theirs = os.openpty()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, "crawl", f"{web.origin('h')}/", *LOCAL[:1],
            "--delay", "0.5", cwd=shell.directory, stdin=theirs, stdout=theirs, stderr=theirs,
            env=os.environ | {"COLUMNS": "200", "TERM": "xterm"},
        )  # fmt: skip
        os.close(theirs)
        said = await asyncio.to_thread(read_whole, terminal)
        assert await process.wait() == 0
    assert " left, " in said
    assert "not believed" in said
    assert any("not believed" in row for row in left_on_screen(said))


def read_whole(terminal: int) -> str:
    said = b""
    with suppress(OSError), open(terminal, "rb", buffering=0) as file:
        while more := file.read(65_536):
            said += more
    return said.decode()


def left_on_screen(said: str) -> list[str]:
    """What a terminal shows in the end: lines are overwritten where the cursor went up."""
    rows, at = [""], 0
    for text, up, erased, new in re.findall(r"([^\x1b\r\n]+)|\x1b\[(\d*)A|(\x1b\[2K)|(\n)", said):
        at = max(at - int(up or 1), 0) if not (text or erased or new) else at + bool(new)
        rows += [""] * (at + 1 - len(rows))
        rows[at] = "" if erased else rows[at] + text
    return rows


@pytest.mark.long
async def test_a_daemon_bears_its_operator_and_strangers(shell: Shell) -> None:
    settings, store = shell.directory / "daemon.toml", shell.directory / "crawl.db"
    pushed, listen = (f"127.0.0.1:{free_port()}" for _ in range(2))
    settings.write_text(f'[receiver]\nlisten = "{pushed}"\npublic_url = "http://{pushed}"\n')
    site = {"/": page(0, links(*(f"/{n}" for n in range(1, 60))))}
    site |= {f"/{n}": page(n) for n in range(1, 60)}
    async with scripted({"h": site}) as web, aiohttp.ClientSession() as client:
        url = f"{web.origin('h')}/"
        options = ("--budget", "36000/hour", "--listen", listen, "--config", settings)
        daemon = await shell.start("daemon", url, *options, *LOCAL)
        try:
            while not web.asked("h"):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
            ping = {
                "host": url.split("/")[2],
                "key": "0123456789abcdef",
                "urlList": [f"{url}\ud800"],
            }
            async with client.post(f"http://{pushed}/indexnow", json=ping) as answer:
                assert answer.status == 422
            name, port = listen.split(":")
            idle = [socket.create_connection((name, int(port))) for _ in range(250)]
            async with client.get(f"http://{listen}/healthz") as answer:
                assert answer.status == 200
            files = len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))
            for each in idle:
                each.close()
            assert files < 250
            assert store.stat().st_mode & 0o777 == 0o600
            (twin := shell.directory / "twin.db").hardlink_to(store)
            assert (await shell("crawl", url, "--db", twin, *LOCAL))[0] == 1
            twin.unlink()
            settings.write_text("nonsense = 1\n")
            assert (await shell("reload"))[0] == 1
            store.unlink()
            _, said = await asyncio.wait_for(daemon.communicate(), 10)
            assert (daemon.returncode, b"removed" in said) == (1, True)
        finally:
            if daemon.returncode is None:
                daemon.kill()
