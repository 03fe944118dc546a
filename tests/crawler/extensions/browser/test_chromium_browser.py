"""What a real Chromium shows, and that nothing of it reaches a network."""

import asyncio
import os
import select
import shutil
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from freshet.crawler.errors import CrawlError, Unfetched
from freshet.crawler.extensions.browser.chromium import BrowserRules, Browsers, browser_program
from freshet.storage.records import FetchResult

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)
PAGE = "http://page.test/"


def html(body: str, url: str = PAGE) -> FetchResult:
    headers = ((b"Content-Type", b"text/html; charset=iso-8859-1"), (b"Set-Cookie", b"a=1"))
    return FetchResult(
        url, "fetched", 0.0, 0.0, 200, headers=headers, body=body.encode("latin-1"),
    )  # fmt: skip


class Web:
    """Answers requests of pages from a mapping, and notes them."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = files or {}
        self.asked = list[tuple[str, str]]()

    async def serve(
        self, url: str, kind: str, method: str, headers: Mapping[str, str]
    ) -> FetchResult | None:
        self.asked.append((kind, url))
        found = self.files.get(url)
        return None if found is None else html(found, url)


@pytest.fixture
async def browsers() -> AsyncIterator[Browsers]:
    made = Browsers(BrowserRules(time_limit_s=8.0, memory_bytes=2**30), 1)
    yield made
    await made.close()


HOSTILE = """<p id=done>busy</p><link rel=dns-prefetch href="//dns.test">
<link rel=preconnect href="http://127.0.0.1:@TCP/">
<link rel=prefetch href="http://127.0.0.1:@TCP/p">
<link rel=prerender href="http://127.0.0.1:@TCP/r"><img src="http://127.0.0.1:@TCP/i">
<iframe src="http://127.0.0.1:@TCP/f"></iframe><iframe srcdoc="<script>
new WebSocket('ws://127.0.0.1:@TCP/w2'); fetch('http://127.0.0.1:@TCP/f2')</script>"></iframe>
<object data="http://127.0.0.1:@TCP/o"></object>
<video src="http://127.0.0.1:@TCP/v" autoplay></video>
<script type=speculationrules>{"prefetch": [{"urls": ["http://127.0.0.1:@TCP/s"]}]}</script>
<form id=f method=post action="http://127.0.0.1:@TCP/form"></form>
<script>
const to = 'http://127.0.0.1:@TCP/', tries = [
  () => fetch(to + 'fetch', {mode: 'no-cors'}), () => fetch('http://localhost:@TCP/name'),
  () => fetch('http://[::1]:@TCP/six'), () => fetch(to, {method: 'POST', body: 'x'}),
  () => { const x = new XMLHttpRequest(); x.open('GET', to + 'xhr', false); x.send(); },
  () => new WebSocket('ws://127.0.0.1:@TCP/ws'), () => new EventSource(to + 'events'),
  () => navigator.sendBeacon(to + 'beacon', 'x'), () => window.open(to + 'popup'),
  () => navigator.serviceWorker.register('/worker.js'),
  () => new Worker(URL.createObjectURL(new Blob([`
    fetch('${to}w'); new WebSocket('ws://127.0.0.1:@TCP/ww'); importScripts('${to}i.js')`]))),
  () => new SharedWorker(URL.createObjectURL(new Blob([`fetch('${to}sw')`]))),
  () => new WebTransport('https://127.0.0.1:@UDP/'),
  async () => { const iceServers = [{urls: 'stun:127.0.0.1:@UDP'}];
    const here = new RTCPeerConnection({iceServers}), there = new RTCPeerConnection();
    here.createDataChannel('d');
    const offer = await here.createOffer(); await here.setLocalDescription(offer);
    await there.setRemoteDescription(offer); const answer = await there.createAnswer();
    await there.setLocalDescription(answer); await here.setRemoteDescription(answer);
    await here.addIceCandidate({candidate: 'candidate:1 1 udp 2122260223 127.0.0.1 @UDP typ host',
      sdpMid: '0'}); },
  () => document.getElementById('f').submit(),
];
(async () => { for (const each of tries) { try { await Promise.race([each(),
  new Promise(go => setTimeout(go, 100))]); } catch (e) {} }
  setTimeout(() => { document.getElementById('done').textContent = 'tried'; }, 1500); })();
</script>"""


class Listeners:
    """Sockets of loopback at which whatever arrives is noticed."""

    def __init__(self) -> None:
        self.four, self.six = socket.socket(), socket.socket(socket.AF_INET6)
        self.datagrams = socket.socket(type=socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", 0))
        self.four.bind(("127.0.0.1", 0))
        self.port, self.udp = self.four.getsockname()[1], self.datagrams.getsockname()[1]
        self.six.bind(("::1", self.port))
        self.four.listen()
        self.six.listen()

    def arrived(self) -> set[str]:
        """Return at which kinds of them something has arrived."""
        kinds = {self.four: "TCP", self.six: "TCP", self.datagrams: "UDP"}
        return {kinds[each] for each in select.select(list(kinds), (), (), 0.2)[0]}

    def close(self) -> None:
        for each in (self.four, self.six, self.datagrams):
            each.close()


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("is_isolated", [True, False])
async def test_nothing_that_a_page_tries_reaches_a_network(
    browsers: Browsers, monkeypatch: pytest.MonkeyPatch, is_isolated: bool
) -> None:
    # Nothing depends on what a page could get back.
    monkeypatch.setattr("freshet.crawler.extensions.browser.chromium._TAKEN", "")
    if not is_isolated:
        # What would arrive by what no interception sees; so the listeners hear.
        monkeypatch.setattr("freshet.crawler.extensions.browser.chromium._ISOLATED", ())
    listeners, web = Listeners(), Web()
    page = HOSTILE.replace("@TCP", f"{listeners.port}").replace("@UDP", f"{listeners.udp}")
    shown = await browsers.show(html(page, f"http://127.0.0.1:{listeners.port}/"), web.serve, 6.0)

    assert b">tried<" in shown.body
    assert listeners.arrived() == (set() if is_isolated else {"TCP", "UDP"})
    assert {"fetch", "xhr", "image", "ping", "eventsource"} <= {kind for kind, _ in web.asked}
    listeners.close()


BUILT = """<!doctype html><html lang=de><title>old</title><div id=app></div><noscript>no</noscript>
<script src=/app.js></script>"""
APP = """
customElements.define('my-box', class extends HTMLElement { connectedCallback() {
  this.attachShadow({mode: 'open'}).innerHTML = '<b>shadow</b><my-box2></my-box2>'; } });
customElements.define('my-box2', class extends HTMLElement { connectedCallback() {
  this.attachShadow({mode: 'open'}).innerHTML = '<i>deeper</i>'; } });
document.cookie.length && document.write('a cookie was kept');
Document.prototype.getElementById = () => null;
setTimeout(() => fetch('/data.json').then(d => d.text()).then(text => {
  const app = document.querySelector('#app');
  app.innerHTML = `<p>${text} für ${navigator.userAgent} ${new Date(0).getTimezoneOffset()}</p>`;
  app.append(document.createElement('my-box'));
  document.title = innerWidth; location = 'http://other.test/'; }), 200);
"""
FILES = {f"{PAGE}app.js": APP, f"{PAGE}data.json": "Daten"}


@pytest.mark.long
@needs_chromium
async def test_a_page_is_what_its_scripts_made_of_it(browsers: Browsers) -> None:
    web = Web(FILES)
    bodies = [(await browsers.show(html(BUILT), web.serve, "quiet")).body for _ in range(2)]

    text = bodies[0].decode("utf-8-sig")
    assert text.startswith('<!DOCTYPE html><html lang="de">')
    assert "<p>Daten für Freshet 0</p>" in text
    assert "<b>shadow</b>" in text
    assert "<i>deeper</i>" in text
    assert "<title>1280</title>" in text
    assert '<script src="/app.js"></script>' in text
    assert "noscript" not in text
    assert "cookie" not in text
    # It stays what it is where its scripts want to go elsewhere.
    assert {url for _, url in web.asked} == FILES.keys()
    assert bodies[1] == bodies[0]


@pytest.mark.long
@needs_chromium
async def test_what_is_waited_for(browsers: Browsers) -> None:
    late = "<script>setTimeout(() => document.write('<p class=late>late'), 900)</script>"
    shown = await browsers.show(html(late), Web().serve, "p.late")
    assert b"late</p>" in shown.body
    shown = await browsers.show(html(late), Web().serve, 1.5)
    assert b"late</p>" in shown.body
    later = html(late.replace("900", "9000"))
    assert b"late</p>" not in (await browsers.show(later, Web().serve, "quiet")).body
    restless = "<p>text</p><script>setInterval(() => fetch('/'), 100)</script>"
    browsers.rules = BrowserRules(time_limit_s=2.0)
    assert b"text" in (await browsers.show(html(restless), Web().serve, "quiet")).body
    with pytest.raises(Unfetched, match=r"nothing matches p\.late after 2 s"):
        await browsers.show(html("<p>x"), Web().serve, "p.late")


@pytest.mark.long
@needs_chromium
async def test_a_browser_that_dies_loses_one_page(browsers: Browsers) -> None:
    await browsers.show(html("<p>x"), Web().serve, "quiet")
    first = browsers._idle[0]._pid
    killing = asyncio.get_running_loop().call_later(1.0, os.kill, first, 9)
    with pytest.raises(Unfetched) as lost:
        await browsers.show(html("<p>x"), Web().serve, 5.0)
    killing.cancel()
    assert lost.value.reason == "browser"
    assert b"<p>y" in (await browsers.show(html("<p>y"), Web().serve, "quiet")).body
    assert browsers._idle[0]._pid != first


@needs_chromium
async def test_a_browser_that_stays_idle_is_ended(
    browsers: Browsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browsers.show(html("<p>x"), Web().serve, "quiet")
    (idle,) = browsers._idle
    browsers._end(idle, idle.shown - 1)
    assert browsers._idle == [idle]
    monkeypatch.setattr("freshet.crawler.extensions.browser.chromium._IDLE_S", 0.0)
    await browsers.show(html("<p>x"), Web().serve, "quiet")
    for _ in range(3):
        await asyncio.sleep(0)
    assert browsers._idle == []
    await browsers.close()
    assert not Path(f"/proc/{idle._pid}/exe").exists()


@pytest.mark.long
@needs_chromium
async def test_a_page_that_hangs_or_takes_memory_is_given_up(
    browsers: Browsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freshet.crawler.extensions.browser.chromium._OVERHEAD_S", 6.0)
    browsers.rules = BrowserRules(time_limit_s=1.0)
    with pytest.raises(Unfetched, match="did not answer in 7 s"):
        await browsers.show(html("<script>for (;;) ;</script>"), Web().serve, "quiet")
    browsers.rules = BrowserRules(time_limit_s=20.0, memory_bytes=500 * 2**20)
    greedy = "<script>k = []; setInterval(() => k.push(new Uint8Array(3e7).fill(1)), 50)</script>"
    with pytest.raises(Unfetched, match="more than 500 MiB of memory"):
        await browsers.show(html(greedy), Web().serve, 15.0)
    browsers.rules = BrowserRules(max_body_bytes=1_000)
    with pytest.raises(Unfetched, match="more than 1000 characters"):
        await browsers.show(html("<p>" + "x" * 2_000), Web().serve, "quiet")


def test_a_missing_browser_is_named_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CrawlError, match="no Chromium is installed; install it"):
        browser_program("")
    monkeypatch.setattr("freshet.crawler.extensions.browser.chromium.find_spec", lambda _: None)
    with pytest.raises(CrawlError, match="needs the extra 'browser'"):
        browser_program("")
