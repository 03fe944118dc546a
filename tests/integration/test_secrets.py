"""No line that a daemon logs holds a secret, even where others put it into their answers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.alerts.receivers import Delivery, Webhook
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.logs import configure_logging
from freshet.crawler.run.orders import DaemonOrder
from tests.integration.hubs import Habits, Hub, free_port
from tests.integration.quick import quick, unwatched

DAY_S = 86_400.0
SITE = "http://news.localhost/"
KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "T0K3N-in-the-path"
USER, PASSWORD = "someb0dy", "w0rd-0f-pass"


pytestmark = pytest.mark.usefixtures("logging_as_before")


@contextmanager
def tattling() -> Iterator[str]:
    """A receiver that refuses, and says what it was asked under which key; its place."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(500, f"no {self.path} for {KEY}")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def kept(db: Path, receiver: str) -> tuple[str, str]:
    """A daemon with two receivers and a hub; token and secret of its subscription."""
    web = showcase(seed=7, traps=False)
    clock, port = VirtualClock(web.start_at + 5 * DAY_S), free_port()
    hub = Hub(SyntheticFetcher(web, clock.now), clock, {SITE: Habits("subscribe")})

    def shared() -> tuple[str, str]:
        form = hub.asked[0][1]
        return form["hub.callback"].rsplit("/", 1)[-1], form["hub.secret"]

    async def tell(hub: Hub) -> None:
        said = {
            "hub.mode": "denied", "hub.topic": SITE, "hub.reason": "no {} for {}".format(*shared()),
        }  # fmt: skip
        await hub.get(hub.asked[0][1]["hub.callback"], said)

    hub.after(2.0, SITE, tell)
    rules = [
        {"name": name, "match": "*", "kinds": ["new"], "secret": f"whsec_{KEY}",
         "url": f"http://{USER}:{PASSWORD}@{receiver}/{path}"}
        for name, path in [("refused", f"hooks/{TOKEN}"), ("broken", f"broken?token={TOKEN}")]
    ]  # fmt: skip
    settings = quick(
        receiver__listen=f"127.0.0.1:{port}", receiver__public_url=f"http://127.0.0.1:{port}",
        alerts__rules=rules,
    )  # fmt: skip
    order = DaemonOrder(db, seeds_from_arguments([SITE]).seeds, 600.0, time_limit_s=DAY_S / 5)
    await keep(settings, order, watch=unwatched, fetcher=hub, clock=clock, rng=Random(1))
    return shared()


async def test_the_log_of_a_daemon_holds_none_of_its_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver = Webhook.deliver

    async def delivered(self: Webhook, message: Message, now: float) -> Delivery:
        if "broken" in self._url:
            raise RuntimeError(f"{self._url} for {KEY}")
        return await deliver(self, message, now)

    monkeypatch.setattr(Webhook, "deliver", delivered)
    configure_logging("json", verbose=True)
    with tattling() as receiver:
        callback, hub_secret = await kept(tmp_path / "crawl.db", receiver)
    written = capsys.readouterr().err
    lines = [json.loads(line) for line in written.splitlines()]
    said = [line["message"] for line in lines]
    # They have been quoted, each by those that know them.
    assert any("failed (HTTP 500 no /hooks/*** for ***)" in each for each in said)
    assert any("denies" in each and "no *** for ***" in each for each in said)
    assert any("*** for ***" in line.get("exception", "") for line in lines)
    for secret in (KEY, TOKEN, USER, PASSWORD, callback, hub_secret):
        assert secret not in written
