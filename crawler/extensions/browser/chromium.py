"""Chromium without a network: it shows a page, and Freshet makes all requests of the page.

*Invariant.* The browser cannot connect to any host: its proxy is a closed port of this machine, it
resolves no names, and sends no datagrams. Consequence: a page's requests are answered by
:data:`Serve` or not at all, so that robots.txt, address guard and limits hold for it as for us.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from freshet.crawler.errors import CrawlError, Unfetched, needs_extra
from freshet.storage.records import FetchResult

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Page, Route

#: Names under which distributions install it.
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET_S: Final = 0.5
_TICK_S: Final = 0.05
#: Seconds for overhead: the start of a browser, the reading of a document.
_OVERHEAD_S: Final = 30.0
#: Pages of one process, after which a new one frees the memory that pages leave behind.
_PAGES_EACH: Final = 200
#: Seconds after which an idle browser, of some 400 MB, is ended.
_IDLE_S: Final = 60.0
#: Options that keep it from every network, and features that are off because they need one.
_ISOLATED: Final = (
    "--proxy-server=http://127.0.0.1:PORT",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
)
_TAKEN: Final = (
    "delete globalThis.RTCPeerConnection; delete globalThis.webkitRTCPeerConnection;"
    "delete globalThis.WebTransport; delete globalThis.SharedWorker;"
)
#: What is true of an answer on the wire, and not of the body that a page gets.
_DROPPED: Final = frozenset(
    "content-encoding content-length refresh set-cookie transfer-encoding".split()
)
#: The header that lets other origins read an answer, and a value that no origin has.
_PERMISSION: Final = "access-control-allow-origin"
_FOR_NOBODY: Final = "none"
#: The document with its shadow trees, without scripts and ``noscript`` elements; null if it is too
#: long. It is copied to a world in which the page's scripts do not run.
_SERIALISED: Final = """(most => {
  const aside = document.implementation.createHTMLDocument();
  const open = (live, copies) => live.querySelectorAll('*').forEach((each, number) => {
    if (!each.shadowRoot) return;
    const tree = aside.createDocumentFragment();
    for (const child of each.shadowRoot.childNodes) tree.append(aside.importNode(child, true));
    open(each.shadowRoot, [...tree.querySelectorAll('*')]);
    copies[number].prepend(tree);
  });
  const copy = aside.importNode(document.documentElement, true);
  open(document, [copy, ...copy.querySelectorAll('*')]);
  copy.querySelectorAll('noscript').forEach(each => each.remove());
  copy.querySelectorAll('script:not([type$=json])').forEach(each => each.textContent = '');
  const text = '<!DOCTYPE html>' + copy.outerHTML;
  return text.length > most ? null : text;
})"""
#: Waits for seconds by the page's clock, which stops while its scripts are busy or wait for a
#: processor: work that they have planned for that time is done first.
_RESTED: Final = """(seconds => new Promise(done => requestIdleCallback(() => setTimeout(
  () => requestIdleCallback(done, {timeout: 500}), 1e3 * seconds), {timeout: 500})))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRules:
    """The program (empty: the one that is installed), who we are, and the bounds of a page.

    A page may make requests of the ``kinds`` (Chromium's), but not to ``blocked_hosts`` and
    their subdomains.
    """

    executable: str = ""
    user_agent: str = "Freshet"
    language: str = ""
    kinds: tuple[str, ...] = ("script", "stylesheet", "xhr", "fetch")
    blocked_hosts: tuple[str, ...] = ()
    time_limit_s: float = 30.0
    max_requests: int = 200
    max_bytes: int = 20_000_000
    max_body_bytes: int = 10 * 2**20
    memory_bytes: int = 2**30


#: Answers a request of a page, of some URL, kind, method and headers; None refuses it.
Serve = Callable[[str, str, str, Mapping[str, str]], Awaitable[FetchResult | None]]


def browser_program(executable: str) -> str:
    """Return the path of Chromium.

    Raises:
        CrawlError: it, or what drives it, is not installed.
    """
    if find_spec("playwright") is None:
        raise CrawlError(needs_extra("rendering", "browser"))
    found = next(filter(None, map(shutil.which, (executable,) if executable else _NAMES)), None)
    if found is None:
        what = f"{executable} is no program" if executable else "no Chromium is installed"
        advice = "install it (Debian: apt-get install chromium), or name another"
        raise CrawlError(f"browser.executable: {what}; {advice}")
    return found


class Browsers:
    """Browsers that show one page each at a time, ``number`` at most, with a fresh profile.

    A browser that crashes, hangs or takes too much memory is killed, and loses the page it shows.
    """

    def __init__(self, rules: BrowserRules, number: int) -> None:
        self.rules = rules
        self._free = asyncio.Semaphore(number)
        self._idle: list[_Chromium] = []
        self._ending = set[asyncio.Task[None]]()

    async def show(self, document: FetchResult, serve: Serve, wait: str | float) -> FetchResult:
        """Show a document until the awaited state, and return the resulting document.

        ``wait`` is ``quiet``, seconds, or a CSS selector. Raises Unfetched if the state is not
        reached, the browser is lost, or the page is too large.
        """
        async with self._free:
            chromium = self._idle.pop() if self._idle else _Chromium(self.rules)
            try:
                shown = await chromium.show(_Load(document, serve, wait, self.rules.time_limit_s))
            except BaseException:
                await chromium.stop()
                raise
            self._idle.append(chromium)
            left_s = _IDLE_S if chromium.shown < _PAGES_EACH else 0.0
            asyncio.get_running_loop().call_later(left_s, self._end, chromium, chromium.shown)
            return shown

    def _end(self, chromium: _Chromium, shown: int) -> None:
        """End a browser that has shown no page since the count ``shown``."""
        if chromium in self._idle and chromium.shown == shown:
            self._idle.remove(chromium)
            self._ending.add(task := asyncio.create_task(chromium.stop()))
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all browsers."""
        for each in self._idle.copy():
            self._end(each, each.shown)
        await asyncio.gather(*self._ending)


class _Load:
    """A page that is being shown, and the requests that it makes."""

    page: Page

    def __init__(
        self, document: FetchResult, serve: Serve, wait: str | float, most_s: float
    ) -> None:
        self.document, self.wait, self.most_s = document, wait, most_s
        self.error: Exception | None = None
        self._clock, self._serve = asyncio.get_running_loop().time, serve
        self._began_at = self._clock()
        self._changed_at = 0.0
        self._is_given, self._pending = False, 0

    async def answer(self, route: Route) -> None:
        """Answer a request of the page."""
        self._pending += 1
        try:
            found = await self._found(route)
        except Exception as error:  # noqa: BLE001 - this task is playwright's; the load raises it
            found, self.error = None, error
        # The page may be closed meanwhile.
        with suppress(_driver().Error):
            if found is None:
                # A navigation that ends with this word leaves the page as it is.
                await route.abort("aborted")
            else:
                await route.fulfill(status=found.status, headers=_told(found), body=found.body)
        self._pending -= 1
        self._changed_at = self._clock()

    async def _found(self, route: Route) -> FetchResult | None:
        asked = route.request
        if not asked.is_navigation_request():
            return await self._serve(asked.url, asked.resource_type, asked.method, asked.headers)
        # The first navigation is the page's. Frames, other windows and pages are not part of it.
        document = None if self._is_given else self.document
        self._is_given = True
        return document

    async def settled(self, rested: Callable[[float], Awaitable[object]]) -> None:
        """Wait for the awaited state; the page has ``rested`` for seconds of its clock."""
        ends_at = self._began_at + self.most_s
        if isinstance(self.wait, float | int):
            await asyncio.sleep(min(self.wait, self.most_s))
        elif self.wait != "quiet":
            most_ms = self.most_s * 1e3
            await self.page.wait_for_selector(f"css={self.wait}", state="attached", timeout=most_ms)
        while self.wait == "quiet" and (left_s := ends_at - self._clock()) > 0:
            last = self._changed_at
            if not self._pending:
                await rested(min(_QUIET_S, left_s))
            # What it asked for last may be on its way.
            await asyncio.sleep(_TICK_S)
            if not self._pending and self._changed_at == last:
                break


class _Chromium:
    """One browser with its processes; ``shown`` counts its pages."""

    def __init__(self, rules: BrowserRules) -> None:
        self.shown = 0
        self._rules = rules
        self._browser: Browser | None = None
        self._control: CDPSession | None = None
        self._pid = 0
        self._held = AsyncExitStack()

    async def show(self, load: _Load) -> FetchResult:
        # A page that keeps its process busy must not keep us.
        tasks = [asyncio.ensure_future(each) for each in (self._show(load), self._watch())]
        most_s = load.most_s + _OVERHEAD_S
        try:
            done, _ = await asyncio.wait(tasks, timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise Unfetched("browser", f"the browser did not answer in {most_s:g} s")
            return done.pop().result()
        except _driver().TimeoutError as error:
            why = f"nothing matches {load.wait} after {load.most_s:g} s"
            raise Unfetched("selector", why) from error
        except _driver().Error as error:
            raise Unfetched("browser", error.message) from error
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _show(self, load: _Load) -> FetchResult:
        browser = self._browser or await self._started()
        self.shown += 1
        context = await browser.new_context(
            user_agent=self._rules.user_agent, locale=self._rules.language or "en",
            timezone_id="UTC", viewport={"width": 1280, "height": 1024}, reduced_motion="reduce",
            service_workers="block", accept_downloads=False,
        )  # fmt: skip
        await context.add_init_script(_TAKEN)
        await context.route(re.compile(""), load.answer)
        await context.route_web_socket(re.compile(""), lambda opened: opened.close())
        page = load.page = await context.new_page()
        await page.goto(load.document.url, wait_until="commit", timeout=0)
        session = await context.new_cdp_session(page)
        await load.settled(partial(_evaluated, session, _RESTED))
        most = self._rules.max_body_bytes
        text = await _evaluated(session, _SERIALISED, most)
        if not isinstance(text, str):
            raise Unfetched("too_large", f"more than {most} characters when it is rendered")
        if load.error is not None:
            raise load.error
        await context.close()
        # The byte order mark takes precedence over the encoding that the response states.
        return replace(load.document, body=BOM_UTF8 + text.encode("utf-8", "replace"))

    async def _started(self) -> Browser:
        # Bound, without listening, so that no other process can listen there.
        closed = self._held.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        driver = await self._held.enter_async_context(_driver().async_playwright())
        # A start that fails costs a page its visit; most that fail succeed the second time.
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_driver().Error), stop=stop_after_attempt(2), reraise=True
        )
        browser: Browser = await tries(
            driver.chromium.launch,
            executable_path=browser_program(self._rules.executable),
            # root may not use it.
            chromium_sandbox=os.geteuid() != 0,
            # Who stops us stops it.
            handle_sigint=False, handle_sigterm=False, handle_sighup=False,
            ignore_default_args=["--disable-popup-blocking"],
            args=[each.replace("PORT", str(port)) for each in _ISOLATED],
        )  # fmt: skip
        self._control = await browser.new_browser_cdp_session()
        processes = await _processes(self._control)
        self._pid = next(pid for kind, pid in processes if kind == "browser")
        self._browser = browser
        return browser

    async def _watch(self) -> FetchResult:
        """Raise Unfetched when the processes take too much memory."""
        while True:
            await asyncio.sleep(_QUIET_S)
            processes = await _processes(self._control) if self._control else []
            if sum(_memory_bytes(pid) for _, pid in processes) > self._rules.memory_bytes:
                most = self._rules.memory_bytes // 2**20
                raise Unfetched("browser", f"it took more than {most} MiB of memory")

    async def stop(self) -> None:
        """End the processes, however they are."""
        with suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
        await self._held.aclose()


def _told(answer: FetchResult) -> dict[str, str]:
    """Return the headers for a page; they let it read no more than the server's headers do."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in answer.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name not in _DROPPED:
            # Two permissions that differ are void; the browser sees that if it has both.
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    # Without a permission, playwright adds one for the requesting origin.
    return {_PERMISSION: _FOR_NOBODY} | headers


def _driver() -> ModuleType:
    return import_module("playwright.async_api")  # an extra


async def _evaluated(session: CDPSession, function: str, argument: float) -> object:
    """Return the value of a function on a page, isolated from the page's scripts."""
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame})
    how = {"contextId": world["executionContextId"], "returnByValue": True, "awaitPromise": True}
    how["expression"] = f"{function}({argument})"
    return (await session.send("Runtime.evaluate", how))["result"].get("value")


async def _processes(control: CDPSession) -> list[tuple[str, int]]:
    said = await control.send("SystemInfo.getProcessInfo")
    return [(each["type"], each["id"]) for each in said["processInfo"]]


def _memory_bytes(pid: int) -> int:
    """Return a process's share of memory; 0 if it has ended, or this is not Linux."""
    with suppress(OSError):
        said = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        return 1_024 * sum(map(int, re.findall(r"^Pss: +(\d+)", said, re.MULTILINE)))
    return 0
