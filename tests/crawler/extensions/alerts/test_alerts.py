"""``freshet alerts``, and that no secret is shown anywhere."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from freshet.storage.database import open_store
from tests.console import freshet
from tests.storage.small_store import rows, small_store

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@contextmanager
def receiving(status: int = 204) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A receiver on loopback: its URL, and what it was told."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/token-in-the-path", told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def being_written(path: Path) -> Iterator[None]:
    """As if a daemon were running on the store."""
    with asyncio.Runner() as runner:
        database = runner.run(open_store(path, owner="daemon"))
        try:
            yield
        finally:
            runner.run(database.close())


def configured(directory: Path, url: str, **more: str) -> list[str]:
    path = directory / "freshet.toml"
    lines = [f'{key} = "{value}"' for key, value in more.items()]
    head = '[[alerts.rules]]\nname = "hook"\nmatch = "*"\n'
    path.write_text(f'{head}url = "{url}"\n' + "\n".join(lines) + "\n", "utf-8")
    return ["--config", str(path)]


async def written(directory: Path) -> list[str]:
    """A store with a change that is to be told."""
    store = await small_store(directory / "crawl.db")
    store.run(0.0)
    store.host()
    page = store.page("/a", title="A page")
    store.observe(page, 100.0, "new")
    seen = store.observe(page, 200.0, "changed", blocks_added=1, blocks_removed=2)
    store.insert("alert", key="alert_1", rule="hook", observation_id=seen, kind="changed", at=200.0)
    return ["--db", str(store.path)]


def stored(directory: Path) -> list[str]:
    return asyncio.run(written(directory))


def invoke(*arguments: str) -> tuple[int, str]:
    result = freshet("alerts", *arguments)
    return result.exit_code, result.output


def rule(*options: str) -> dict[str, object]:
    code, output = invoke(*options, "--json")
    assert code == 0
    (found,) = json.loads(output.splitlines()[-1])["rules"]
    return dict(found)


def test_what_waits_is_sent_and_counted(tmp_path: Path) -> None:
    options = stored(tmp_path)
    with receiving() as (url, told):
        options += configured(tmp_path, url, secret=SECRET)
        assert rule(*options)["waiting"] == 1
        sent = rule(*options, "--send")
        assert (sent["waiting"], sent["pending"], sent["sent"], sent["failed"]) == (0, 0, 1, 0)
        assert rule(*options, "--send")["sent"] == 1
    (message,) = told
    assert message["type"] == "page.changed"
    data = message["data"]
    assert isinstance(data, dict)
    assert data["title"] == "A page"
    assert data["summary"] == "1 block added, 2 removed"
    assert data["last_seen"] == "1970-01-01T00:01:40.000000Z"


def test_what_was_refused_is_shown_and_tried_again_when_asked(tmp_path: Path) -> None:
    options = stored(tmp_path)
    with receiving(400) as (url, _):
        options += configured(tmp_path, url)
        refused = rule(*options, "--send")
        assert (refused["failed"], refused["answer"]) == (1, "HTTP 400 Bad Request")
        assert "HTTP 400" in invoke(*options)[1]
    # A daemon may be writing the store meanwhile.
    with being_written(tmp_path / "crawl.db"):
        assert rule(*options, "--retry")["pending"] == 1


def test_a_rule_that_is_in_the_settings_no_longer_is_told_of_and_dropped(tmp_path: Path) -> None:
    db = stored(tmp_path)
    options = db + configured(tmp_path, "http://127.0.0.1:2/")
    code, output = invoke("--drop", "hook", *options)
    assert code == 1
    assert "hook is in the settings; remove it there" in output
    assert "hook is not in the settings any more; `freshet alerts --drop hook`" in invoke(*db)[1]
    # A daemon may be writing the store meanwhile.
    with being_written(tmp_path / "crawl.db"):
        code, output = invoke("--drop", "hook", *db)
    assert code == 0
    assert "hook: rule removed; discarded: 1 alert and 0 messages unsent, 0 given up" in output
    assert "No alerts: add" in output
    code, output = invoke("--drop", "hook", *db)
    assert code == 1
    assert "no alerts of a rule hook" in output
    assert rows(tmp_path / "crawl.db", "SELECT count(*) FROM alert") == [(0,)]


def test_a_running_daemon_sends_by_itself(tmp_path: Path) -> None:
    options = stored(tmp_path)
    options += configured(tmp_path, "http://127.0.0.1:2/")
    with being_written(tmp_path / "crawl.db"):
        code, output = invoke(*options, "--send")
    assert code == 1
    assert "a freshet daemon" in output


def test_a_test_message_arrives_or_says_why_not(tmp_path: Path) -> None:
    with receiving() as (url, told):
        options = configured(tmp_path, url)
        assert invoke("--test", "hook", *options)[0] == 0
        assert told[0]["type"] == "test"
    code, output = invoke("--test", "hook", *options)
    assert code == 1
    assert "hook: http://127.0.0.1" in output
    assert "token" not in output
    assert "there is no rule other" in invoke("--test", "other", *options)[1]


@pytest.mark.parametrize(
    ("url", "secret", "why"),
    [
        ("env:NOT_THERE", SECRET, "url: environment variable NOT_THERE is not set"),
        ("https://a.example/", "file:/not/there", "secret: /not/there: No such file or directory"),
        ("https://a.example/", "too-short-a-secret", "secret: it has 18 bytes"),
        ("no-url-at-all", SECRET, "url is neither a URL"),
        ("https://", SECRET, "url is neither a URL"),
        ("nonsense://some-token", SECRET, "nonsense://…: apprise does not know"),
    ],
)
def test_a_rule_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, url: str, secret: str, why: str
) -> None:
    code, output = invoke("--test", "hook", *configured(tmp_path, url, secret=secret))
    assert code == 1
    assert why in output
    assert len(output.splitlines()) == 1
    assert "some-token" not in output
    assert "too-short" not in output


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"mode": "weekly"}, "alerts.rules[0].mode: "),
        ({"zone": "Mars/Olympus"}, "alerts.rules[0].zone: input should be a time zone"),
        ({"secrets": SECRET}, "alerts.rules[0].secrets: "),
    ],
)
def test_a_rule_that_is_wrong_is_refused_without_its_secrets(
    tmp_path: Path, more: dict[str, str], why: str
) -> None:
    options = configured(tmp_path, "https://h.example/token", **more)
    result = freshet("config", "show", *options)
    assert result.exit_code == 2
    assert why in result.output
    assert SECRET not in result.output
    assert "token" not in result.output


def test_secrets_are_masked_where_settings_are_shown_and_kept(tmp_path: Path) -> None:
    with receiving() as (url, _):
        options = configured(tmp_path, url.replace("//", "//name:word@"), secret=SECRET)
        for json_too in ([], ["--json"]):
            shown = freshet("config", "show", *options, *json_too)
            assert "http://127.0.0.1" in shown.output
            assert not any(each in shown.output for each in (SECRET, "token-in", "word@"))
        path = tmp_path / "crawl.db"
        crawled = freshet(
            "crawl", "http://127.0.0.1:2/", "--db", path, "--allow-private-addresses",
            "--time-limit", "0.1", *options,
        )  # fmt: skip
        assert crawled.exit_code == 0
    ((kept,),) = rows(path, "SELECT settings FROM crawl_run")
    assert "http://127.0.0.1" in kept
    assert not any(each in kept + crawled.output for each in (SECRET, "token-in", "word@"))
