"""A rendered page reads of other origins what they let it read, and is nobody there."""

import asyncio
import re
import struct
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from freshet.config.settings import SiteSettings
from freshet.crawler.extensions.browser import chromium as browser
from freshet.crawler.extensions.browser import rendering
from freshet.crawler.extensions.browser.chromium import BrowserRules, Browsers
from freshet.crawler.extensions.browser.rendering import RenderingFetcher
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver
from freshet.crawler.fetch.client import FetchLimits, NetworkFetcher, Request
from freshet.crawler.run.access import access_at
from freshet.storage.records import FetchResult
from tests.crawler.extensions.browser.test_chromium_browser import needs_chromium
from tests.crawler.fetch.hostile_server import HostileServer, hostile, page

AGENT = "Freshet/1.0"
JSON, CSS = "Content-Type: application/json", "Content-Type: text/css"
SCRIPT = "Content-Type: text/javascript"
ANY = "Access-Control-Allow-Origin: *"
OTHER = "Access-Control-Allow-Origin: https://trusted.example"


def picture(text: str) -> bytes:
    """A picture whose red pixels are the text."""
    line = b"\0" + b"".join(bytes((letter, 0, 0)) for letter in text.encode())

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))  # fmt: skip

    size = struct.pack(">IIBBBBB", len(text), 1, 8, 2, 0, 0, 0)
    packed = chunk(b"IDAT", zlib.compress(line))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + packed + chunk(b"IEND", b"")


def moved(to: str, *headers: str) -> bytes:
    return page(b"", f"Location: {to}", *headers, status="302 Found")


#: What the other origin has, by path; nothing of it is for the page.
VICTIM = {
    "/fetch": page(b"S3CRET_fetch"),
    "/include": page(b"S3CRET_include"),
    "/xhr": page(b"S3CRET_xhr"),
    "/worker": page(b"S3CRET_worker"),
    "/nobody": page(b"S3CRET_nobody"),
    "/module": page(b"export default 'S3CRET_module'", SCRIPT),
    "/json": page(b'{"x": "S3CRET_json"}', JSON),
    "/style": page(b".S3CRET_style {color: red}", CSS),
    "/style_module": page(b".S3CRET_style_module {color: red}", CSS),
    "/error": page(b"an S3CRET_error", SCRIPT),
    "/image": page(picture("S3CRET_image"), "Content-Type: image/png"),
    "/named": page(b"S3CRET_named", OTHER),
    "/twice": page(b"S3CRET_twice", OTHER, ANY),
    "/empty": page(b"S3CRET_empty", "Access-Control-Allow-Origin:"),
    "/moved": page(b"S3CRET_moved"),
    "/moved_named": page(b"S3CRET_moved_named", OTHER),
    "/moved_json": page(b'{"x": "S3CRET_moved_json"}', JSON),
    "/moved_style": page(b"{} .S3CRET_moved_style {color: red}"),
    "/moved_error": page(b"an S3CRET_moved_error"),
    "/moved_image": page(picture("S3CRET_moved_image"), "Content-Type: image/png"),
    "/moved_twice": page(b"S3CRET_moved_twice"),
}
#: What the page tries: functions that return what they have read.
TRIES = """
  const text = (url, how) => fetch(url, how).then(got => got.text());
  const element = (tag, fields) => new Promise((done, failed) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.onload = () => done(made); made.onerror = failed; document.head.append(made); });
  const rules = url => element('link', {rel: 'stylesheet', ...url}).then(
    made => [...made.sheet.cssRules].map(rule => rule.cssText).join());
  const pixels = fields => element('img', fields).then(made => {
    const to = Object.assign(document.createElement('canvas'), {width: made.width, height: 1});
    const on = to.getContext('2d'); on.drawImage(made, 0, 0);
    return [...on.getImageData(0, 0, made.width, 1).data].filter((_, n) => n % 4 == 0)
      .map(red => String.fromCharCode(red)).join(''); });
  const message = fields => new Promise(done => {
    addEventListener('error', event => done(event.message), {once: true});
    element('script', fields).catch(() => done('')); });
  const tries = [
    () => text(V + 'fetch'), () => text(V + 'include', {credentials: 'include'}),
    () => new Promise(done => { const x = new XMLHttpRequest(); x.onloadend = () =>
      done(x.responseText); x.open('GET', V + 'xhr'); x.send(); }),
    () => new Promise(done => { const work = new Worker(URL.createObjectURL(new Blob([
      `fetch('${V}worker').then(g => g.text()).then(postMessage, () => postMessage(''))`])));
      work.onmessage = event => done(event.data); }),
    () => new Promise(done => { const work = new Worker('data:text/javascript,' +
      `fetch('${V}nobody').then(g => g.text()).then(postMessage, () => postMessage(''))`);
      work.onmessage = event => done(event.data); }),
    () => import(V + 'module').then(it => it.default),
    () => import(V + 'json', {with: {type: 'json'}}).then(it => it.default.x),
    () => rules({href: V + 'style', crossOrigin: 'anonymous'}),
    () => import(V + 'style_module', {with: {type: 'css'}}).then(
      it => it.default.cssRules[0].cssText),
    () => message({src: V + 'error', crossOrigin: 'anonymous'}),
    () => pixels({src: V + 'image', crossOrigin: 'anonymous'}),
    () => text(V + 'named'), () => text(V + 'twice'), () => text(V + 'empty'),
    () => text('/moved'), () => text('/moved_named'),
    () => import('/moved_json', {with: {type: 'json'}}).then(it => it.default.x),
    () => rules({href: '/moved_style'}), () => message({src: '/moved_error'}),
    () => pixels({src: '/moved_image'}), () => text(C + 'moved_twice'),
  ];
"""
RUN = """<body><div id=got></div><script>
  const V = '@VICTIM/', C = '@CDN/';
  @TRIES
  (async () => { for (const each of tries) {
    const got = await Promise.race([Promise.resolve().then(each).catch(() => ''),
      new Promise(done => setTimeout(done, 3000, 'too late'))]);
    document.getElementById('got').append(got + ' ');
  } document.getElementById('got').className = 'all'; })();
</script>"""


class AnyLoad:
    """All that a page asks for is allowed, and no host has to be waited for."""

    agent_token = "freshet"

    async def needs(self, _: object) -> bool:
        return True

    async def queue_key(self, url: str) -> str:
        return url

    def allows(self, _url: str) -> bool:
        return True

    def pause_s(self, _queue: str, _now: float) -> float:
        return 0.0

    def heed(self, *_: object) -> None:
        pass

    def now(self) -> float:
        return time.time()

    def request(self, _: object) -> None:
        pass

    async def texts(self, _: object) -> tuple[str, ...]:
        return ()


class Web:
    """Origins of one port, by the names of their hosts, each with what it has by path."""

    def __init__(self, tries: str, hosts: Mapping[str, Mapping[str, bytes]]) -> None:
        self.tries, self.hosts = tries, dict(hosts)
        self.server: HostileServer

    def origin(self, name: str) -> str:
        return f"http://{name}.localhost:{self.server.port}"

    async def answer(self, writer: asyncio.StreamWriter) -> None:
        lines = self.server.requests[-1].decode("latin-1").split("\r\n")
        host = next(line for line in lines if line.startswith("Host: "))
        name, path = host.removeprefix("Host: ").partition(".")[0], lines[0].split()[1]
        writer.write(self.filled(self.hosts[name].get(path, page(b"", status="404 Not Found"))))
        await writer.drain()

    def filled(self, answer: bytes) -> bytes:
        """Put origins into the headers of an answer, whose body has none."""
        for name in self.hosts:
            answer = answer.replace(f"@{name.upper()}".encode(), self.origin(name).encode())
        return answer

    def heads(self, name: str) -> list[str]:
        """Return the heads of the requests to a host."""
        found = [head.decode("latin-1") for head in self.server.requests]
        return [head for head in found if f"\r\nHost: {name}.localhost" in head]

    async def shown(self, *tables: SiteSettings) -> FetchResult:
        body = RUN.replace("@TRIES", self.tries)
        for name in self.hosts:
            body = body.replace(f"@{name.upper()}", self.origin(name))
        self.hosts["home"] = {"/": page(body.encode()), **self.hosts["home"]}
        resolver = CachingResolver()
        guard = AddressGuard(allow_private=True, loopback_only=True)
        network = NetworkFetcher(
            AGENT, FetchLimits(), guard, resolver, access_at=access_at(tables, AGENT)
        )
        kinds = ("script", "stylesheet", "xhr", "fetch", "image", "other")
        rules = BrowserRules(kinds=kinds, user_agent=AGENT)
        browsers = Browsers(rules, 1)

        renders = RenderingFetcher(
            pages=network, others=network, browsers=browsers, rules=AnyLoad()
        )
        try:
            home = Request(f"{self.origin('home')}/")
            return await renders.fetch(home, "always", "#got.all")
        finally:
            await browsers.close()
            await network.close()
            await resolver.close()


@asynccontextmanager
async def web(tries: str, **hosts: Mapping[str, bytes]) -> AsyncIterator[Web]:
    made = Web(tries, {"home": {}, "victim": {}, "cdn": {}, **hosts})
    async with hostile(made.answer) as made.server:
        yield made


MOVED = {path: moved(f"@VICTIM{path}") for path in VICTIM if path.startswith("/moved")}
CDN = {"/moved_twice": moved("@VICTIM/moved_twice", ANY)}


async def leaked() -> set[str]:
    async with web(TRIES, home=MOVED, victim=VICTIM, cdn=CDN) as made:
        shown = await made.shown()
        asked = {head.split()[1] for head in made.heads("victim")}
    assert shown.outcome == "fetched", shown.detail
    text = shown.body.decode().partition('id="got"')[2].partition("</div>")[0]
    assert "too late" not in text
    # It has tried.
    assert asked >= VICTIM.keys()
    return {f"/{name}" for name in re.findall(r"S3CRET_(\w+)", text)}


@needs_chromium
async def test_a_hostile_page_reads_nothing_of_an_origin_that_shares_nothing() -> None:
    assert await leaked() == set()


@pytest.mark.long
@needs_chromium
async def test_a_page_would_read_them_if_the_answers_had_a_permission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: what playwright adds by itself, and redirects that nobody looks at."""
    told = browser._told

    def permits(answer: FetchResult) -> dict[str, str]:
        headers = told(answer)
        del headers[browser._PERMISSION]
        return headers

    monkeypatch.setattr(browser, "_told", permits)
    monkeypatch.setattr(rendering._Requests, "_is_shared", lambda *_: True)
    assert await leaked() == VICTIM.keys()


#: What works: for each a function of the page that returns the word.
WORKS = """
  const text = (url, how) => fetch(url, how).then(got => got.text());
  const element = (tag, fields) => new Promise((done, failed) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.onload = () => done(made); made.onerror = failed; document.head.append(made); });
  const ran = fields => element('script', fields).then(() => said);
  const coloured = (name, url, fields) => element('link', {rel: 'stylesheet', href: url, ...fields})
    .then(() => { const it = document.createElement('b'); it.className = name;
      document.body.append(it); return getComputedStyle(it).color == 'rgb(255, 0, 0)' && name; });
  let said = '';
  const tries = [
    () => text('/own'),
    () => new Promise(done => { const x = new XMLHttpRequest(); x.onloadend = () =>
      done(x.responseText); x.open('GET', '/own_xhr'); x.send(); }),
    () => import('/own_json', {with: {type: 'json'}}).then(it => it.default),
    () => text(C + 'any'), () => text(C + 'named'),
    () => text(C + 'include', {credentials: 'include'}),
    () => text(C + 'asked', {headers: {'X-Custom': '1'}}),
    () => import(C + 'module').then(it => it.default),
    () => element('script', {src: C + 'crossorigin', crossOrigin: 'anonymous'}).then(() => said),
    () => element('link', {rel: 'stylesheet', href: C + 'rules', crossOrigin: 'anonymous'}).then(
      made => made.sheet.cssRules[0].selectorText),
    () => ran({src: C + 'script'}), () => coloured('style', C + 'style'),
    () => coloured('imported', '/imports'), () => ran({src: '/to_script'}),
    () => coloured('to_style', '/to_style'), () => text('/to_any'), () => text('/to_own'),
    () => text(V + 'opaque', {mode: 'no-cors'}).then(got => got || 'opaque'),
  ];
"""
NAMED = "Access-Control-Allow-Origin: @HOME"
SHARING = {
    "/any": page(b"any", ANY),
    "/named": page(b"named", NAMED, "Vary: Origin"),
    "/include": page(b"include", NAMED, "Access-Control-Allow-Credentials: true"),
    "/asked": page(b"asked", ANY, "Access-Control-Allow-Headers: X-Custom"),
    "/module": page(b"export default 'module'", SCRIPT, ANY),
    "/crossorigin": page(b"said = 'crossorigin'", SCRIPT, ANY),
    "/rules": page(b"rules {}", CSS, NAMED),
    "/script": page(b"said = 'script'", SCRIPT),
    "/style": page(b".style {color: red}", CSS),
    "/imported": page(b".imported {color: red}", CSS),
    "/to_script": page(b"said = 'to_script'", "Content-Type: application/javascript"),
    "/to_style": page(b".to_style {color: red}", CSS),
    "/to_any": page(b"to_any", ANY),
}
OWN = {
    "/own": page(b"own"),
    "/own_xhr": page(b"own_xhr"),
    "/own_json": page(b'"own_json"', JSON),
    "/imports": page(b"@import '/../to_imported';", CSS),
    "/to_imported": moved("@CDN/imported"),
    "/to_script": moved("@CDN/to_script"),
    "/to_style": moved("@CDN/to_style"),
    "/to_any": moved("@CDN/to_any"),
    "/to_own": moved("/moved_here"),
    "/moved_here": page(b"to_own"),
}
WORDS = (
    "own own_xhr own_json any named include asked module crossorigin rules script style imported "
    "to_script to_style to_any to_own opaque"
)


@pytest.mark.long
@needs_chromium
async def test_what_is_permitted_and_what_needs_no_permission_goes_on_to_work() -> None:
    async with web(WORKS, home=OWN, victim={"/opaque": page(b"not told")}, cdn=SHARING) as made:
        shown = await made.shown()
    text = shown.body.decode().partition('id="got"')[2].partition("</div>")[0]
    assert text.partition(">")[2].split() == WORDS.split()


COOKIES = """# Netscape HTTP Cookie File
home.localhost\tFALSE\t/\tFALSE\t0\tsession\tcookie-of-home
victim.localhost\tFALSE\t/\tFALSE\t0\tsession\tcookie-of-victim
"""
SECRETS = ("cookie-of-", "key-of-tests", "Authorization")


@needs_chromium
async def test_only_the_pages_own_origin_is_told_who_asks(tmp_path: Path) -> None:
    cookies = tmp_path / "cookies.txt"
    cookies.write_text(COOKIES)
    there = {**VICTIM, "/moved": moved("@HOME/back"), "/moved_named": moved("@CDN/named")}
    home = {**MOVED, "/own": page(b"own"), "/back": page(b"S3CRET_back")}
    tries = TRIES.replace("tries = [", "tries = [() => text('/own'),")
    async with web(tries, home=home, victim=there, cdn=CDN) as made:
        port = made.server.port
        tables = [
            SiteSettings.model_validate({
                "match": f"http://{name}.localhost:{port}",
                "headers": {"X-Api-Key": "key-of-tests"}, "bearer": f"token-of-{name}",
                "cookies": cookies, "user_agent_suffix": f"({name})",
            }) for name in ("home", "victim", "cdn")
        ]  # fmt: skip
        shown = await made.shown(*tables)
    assert shown.outcome == "fetched", shown.detail
    own, others = made.heads("home"), [*made.heads("victim"), *made.heads("cdn")]
    assert {head.split()[1] for head in made.heads("victim")} >= there.keys()
    told = [head.split()[1] for head in others if any(secret in head for secret in SECRETS)]
    assert told == []
    assert all("(victim)" in head or "(cdn)" in head for head in others)
    # Nor is it itself by a redirect that came from there.
    without = [head.split()[1] for head in own if not all(each in head for each in SECRETS)]
    assert (without, "/own" in {head.split()[1] for head in own}) == (["/back"], True)
