"""Credentials go to the site of their table, and nowhere else: not to others, not to a file."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.logs import configure_logging
from tests.console import freshet
from tests.crawler.fetch.hostile_server import CERTIFICATE
from tests.integration.quick import QUICK, unwatched

pytestmark = pytest.mark.usefixtures("logging_as_before")

PASSWORD, PAIR = "pass-word-of-tests", "bWU6cGFzcy13b3JkLW9mLXRlc3Rz"
KEY, COOKIE = "api-key-of-tests", "cookie-of-tests"
SECRETS = [each.encode() for each in (PASSWORD, PAIR, KEY, COOKIE)]
HOME = "<p>Members only. " + " ".join(f'<a href="/to-{n}">{n}</a>' for n in range(3))
CONFIG = """
[archive]
dir = "{folder}/archive"
[[sites]]
match = "localhost"
ca_file = "{certificate}"
[[sites]]
match = "127.0.0.1"
ca_file = "{certificate}"
[[sites]]
match = "https://localhost:{port}"
user = "me"
password = "file:{folder}/password"
headers = {{ X-Api-Key = "env:API_KEY" }}
cookies = "{folder}/cookies.txt"
"""
COOKIES = f"# Netscape HTTP Cookie File\nlocalhost\tFALSE\t/\tTRUE\t0\tsession\t{COOKIE}\n"


class Server:
    """A server that shows a home page, redirects elsewhere, and notes the fields of requests."""

    def __init__(self) -> None:
        self.port, self.leads_to = 0, list[str]()
        self.heads: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.heads.append(str(dict(request.headers)))
        number = request.path.removeprefix("/to-")
        if number.isdecimal() and self.leads_to:
            return web.Response(status=302, headers={"Location": self.leads_to[int(number)]})
        found = request.path == "/"
        return web.Response(text=HOME, status=200 if found else 404, content_type="text/html")


@asynccontextmanager
async def serving(*, tls: bool = True) -> AsyncIterator[Server]:
    context = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
    server = Server()
    runner = web.ServerRunner(web.Server(server.answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


async def test_no_other_origin_and_no_file_gets_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("API_KEY", KEY)
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "cookies.txt").write_text(COOKIES)
    configure_logging("json", verbose=True)
    db, file = tmp_path / "c.db", tmp_path / "my.toml"
    async with serving() as own, serving() as port, serving(tls=False) as plain:
        others = [f"https://localhost:{port.port}/", f"https://127.0.0.1:{port.port}/",
                  f"http://localhost:{plain.port}/"]  # fmt: skip
        own.leads_to = others
        home = f"https://localhost:{own.port}/"
        file.write_text(CONFIG.format(folder=tmp_path, certificate=CERTIFICATE, port=own.port))
        settings, _ = load(file, dict(QUICK))
        order = CrawlOrder(db, seeds_from_arguments([home, *others]).seeds)
        report = await crawl(settings, order, watch=unwatched)
    assert report.pages == 4
    assert len(own.heads) >= 5
    assert all(each.encode() in head.encode() for head in own.heads for each in (PAIR, KEY, COOKIE))
    elsewhere = "".join((*port.heads, *plain.heads)).encode()
    assert len(port.heads) + len(plain.heads) >= 6
    said = capsys.readouterr()
    written = [said.out.encode(), said.err.encode(), elsewhere]
    for words in (
        ["status", "--db", str(db)], ["explain", home, "--db", str(db)],
        ["config", "show", "--config", str(file)],
        ["config", "show", "--config", str(file), "--site", home],
    ):  # fmt: skip
        result = await asyncio.to_thread(freshet, *words)
        assert result.exit_code == 0, result.output
        written.append(result.output.encode())
    archives = list((tmp_path / "archive").glob("*.warc.gz"))
    written += [gzip.decompress(each.read_bytes()) for each in archives]
    assert b"Authorization: ***" in written[-1]
    written += [each.read_bytes() for each in tmp_path.glob("c.db*")]
    assert [each[:200] for each in written for secret in SECRETS if secret in each] == []
