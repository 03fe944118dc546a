"""kill -9 at random moments, from outside, to a daemon that tells two receivers what it finds.

One receiver answers after a while, and now and then with an error; the other hangs now and then.
In the end both must have taken an alert of every page that the store saw appear, change or go,
once by its name and once by what it says. What a receiver gets twice that does not look at names
is counted beside it: it had answered, and the daemon died before it could write that down.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from time import monotonic, sleep, time
from typing import Any, TypeAlias

from scripts.benchmarks import command
from scripts.benchmarks.living_web import UNSLOWED, LivingWeb, Load, living
from scripts.benchmarks.store_inspection import inspect

_CONTACT = "https://bench.example/"
_SECRET = b"a secret of thirty-two bytes ...."
_RULE = """
[[alerts.rules]]
name = "{name}"
match = "*"
kinds = ["new", "changed", "gone"]
url = "http://127.0.0.1:{port}/"
secret = "whsec_{secret}"
"""
_SETTINGS = f"""
[crawl]
contact = "{{contact}}"
[change]
probe = false
{UNSLOWED}[alerts]
timeout_s = {{timeout_s}}
back_off_initial_s = 0.05
back_off_factor = 1.0
"""
KINDS = frozenset({"new", "changed", "gone"})
_CONTENT = frozenset({"new", "changed", "unchanged"})
_TIMEOUT_S = 2.0
_KILLS_PER_STORE = 10
#: Kills come so long after the first request to the web, or the first alert.
_LATEST_S = 3.0
_STARTS_WITHIN_S = 30.0
_SENT_WITHIN = 200

#: URL, time and kind of what an alert tells.
Told: TypeAlias = tuple[str, str, str]


@dataclass(slots=True)
class Findings:
    """What went wrong, which is nothing, and how much there was to go wrong.

    ``taken_twice`` is how often a message was answered with 2xx again, which a receiver sees that
    does not look at names. Each time nobody heard the answer: a daemon was killed after it
    (``answered_before_kill``, by ``window_s`` at most), or while the receiver still thought
    (``under_way_at_kill``), or had waited too long (``timed_out``). ``unexplained`` are all others.
    """

    kills: int = 0
    expected: int = 0
    taken: int = 0
    lost: int = 0
    duplicates: int = 0
    untrue: int = 0
    not_withdrawn: int = 0
    withdrawn: int = 0
    bad_signatures: int = 0
    altered: int = 0
    taken_twice: int = 0
    answered_before_kill: int = 0
    under_way_at_kill: int = 0
    timed_out: int = 0
    unexplained: int = 0
    window_s: float = 0.0
    windows_s: list[float] = field(default_factory=list)
    not_taken_at_first: int = 0
    stores: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Taking:
    """By which process, when (whole seconds) a message was sent, and when answered with 2xx.

    When it came to be read does not tell the process: that may take until the next one has begun.
    """

    life: int
    sent_at: int
    answered_at: float


class Receiver:
    """Takes webhooks, checks their signatures, and answers as well as its character lets it."""

    def __init__(self, name: str, *, errors: float, hangs: float, seed: int) -> None:
        self.name = name
        self.rng = Random(seed)
        self.errors, self.hangs = errors, hangs
        self.is_calm = False
        self.bodies: dict[str, bytes] = {}
        self.taken: Counter[str] = Counter()
        self.taken_at: dict[str, list[Taking]] = {}
        self.not_taken = self.bad_signatures = self.altered = 0
        self.lock = threading.Lock()
        self.port = 0

    def answer(self, key: str, timestamp: str, signed: str, body: bytes) -> tuple[float, int]:
        """How long to think, and the status then."""
        content = f"{key}.{timestamp}.".encode() + body
        digest = base64.b64encode(hmac.new(_SECRET, content, hashlib.sha256).digest()).decode()
        with self.lock:
            self.bad_signatures += signed != f"v1,{digest}"
            self.altered += self.bodies.setdefault(key, body) != body
            if self.is_calm:
                return 0.0, 204
            if self.rng.random() < self.hangs:
                return 3.0, 204
            return self.rng.uniform(0, 0.03), 500 if self.rng.random() < self.errors else 204

    def answered(self, key: str, status: int, taking: Taking) -> None:
        """An answer went out as a whole."""
        with self.lock:
            self.taken[key] += status == 204
            if status == 204:
                self.taken_at.setdefault(key, []).append(taking)
            self.not_taken += status != 204


@contextmanager
def receiving(receiver: Receiver) -> Iterator[Receiver]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["webhook-id"]
            pause, status = receiver.answer(
                key, self.headers["webhook-timestamp"], self.headers["webhook-signature"], body
            )
            sleep(pause)
            try:
                self.send_response(status)
                self.end_headers()
                self.wfile.flush()
            except OSError:
                return
            # What the sender had given up meanwhile is not taken.
            sender = self.headers["User-Agent"].partition(_CONTACT)[2].rstrip(")")
            taking = Taking(int(sender), int(self.headers["webhook-timestamp"]), time())
            receiver.answered(key, 500 if pause > 1 else status, taking)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Trials:
    """Kills daemons, and looks at what was told."""

    def __init__(
        self, web: LivingWeb, receivers: list[Receiver], directory: Path, seed: int
    ) -> None:
        self._web = web
        self._receivers = receivers
        self._directory = directory
        self._rng = Random(seed)
        #: When each process was killed, ``inf`` if it ended by itself.
        self.killed_at: list[float] = []
        self.findings = Findings()

    def run(self, kills: int) -> None:
        """Kill so many times; in the end of each store all that waits is sent."""
        while self.findings.kills < kills:
            store = self._directory / f"store-{self.findings.stores}" / "store.db"
            store.parent.mkdir()
            self._begin()
            for _ in range(min(_KILLS_PER_STORE, kills - self.findings.kills)):
                self._kill(store)
            self._send_all(store)
            self._judge(store)
            found = self.findings
            found.stores += 1
            command.say(
                f"{found.kills} kills, {found.taken} alerts taken, {found.lost} lost, "
                f"{found.duplicates} duplicates"
            )

    def _begin(self) -> None:
        for receiver in self._receivers:
            receiver.bodies.clear()
            receiver.taken.clear()
            receiver.taken_at.clear()
            receiver.is_calm = False

    def _begin_life(self, store: Path) -> None:
        """Let the next process name itself in what it sends."""
        secret = base64.b64encode(_SECRET).decode()
        rules = [_RULE.format(name=r.name, port=r.port, secret=secret) for r in self._receivers]
        contact = f"{_CONTACT}{len(self.killed_at)}"
        settings = _SETTINGS.format(contact=contact, timeout_s=_TIMEOUT_S)
        (store.parent / "freshet.toml").write_text(settings + "".join(rules), "utf-8")
        self.killed_at.append(inf)

    def _kill(self, store: Path) -> None:
        self._begin_life(store)
        size, begun_at = self._web.log.stat().st_size, time()
        with self._web.daemon(store) as running:
            while self._web.log.stat().st_size == size:
                if running.wait(0.02) or time() > begun_at + _STARTS_WITHIN_S:
                    break
            running.wait(self._rng.uniform(0, _LATEST_S))
            self.killed_at[-1] = time()
            running.kill()
        if not running.killed:
            said = running.errors.read_text("utf-8", "replace")[-500:]
            self.findings.problems.append(f"ended by itself: {said}")
        self.findings.kills += running.killed
        self.findings.problems += inspect(store).problems

    def _send_all(self, store: Path) -> None:
        for receiver in self._receivers:
            receiver.is_calm = True
        program = str(Path(sys.executable).with_name("freshet"))
        options = ("--db", store.name, "--config", "freshet.toml", "--send", "--json")
        rules: list[dict[str, Any]] = []
        for _ in range(_SENT_WITHIN):
            self._begin_life(store)
            done = subprocess.run(
                [program, "alerts", *options], cwd=store.parent, capture_output=True, check=True
            )
            rules = json.loads(done.stdout)["rules"]
            if not any(rule["waiting"] or rule["pending"] for rule in rules):
                break
        self.findings.problems += [f"left: {r}" for r in rules if r["waiting"] or r["pending"]]
        self.findings.problems += [f"given up: {r}" for r in rules if r["failed"]]

    def _judge(self, store: Path) -> None:
        first, final = seen(store)
        for receiver in self._receivers:
            self._judge_receiver(receiver, first, final)

    def _judge_receiver(self, receiver: Receiver, first: set[Told], final: set[Told]) -> None:
        found = self.findings
        taken = [json.loads(receiver.bodies[key])["data"] for key in receiver.taken
                 if receiver.taken[key]]  # fmt: skip
        told = Counter((t["url"], t["seen"], t["kind"]) for t in taken)
        withdrawn = {told[:2] for told in told if told[2] == "withdrawn"}
        news = Counter({each: n for each, n in told.items() if each[2] in KINDS})
        found.expected += len(final)
        found.taken += len(taken)
        found.lost += len(final - news.keys())
        found.duplicates += sum(n - 1 for n in news.values())
        found.untrue += len(news.keys() - first - final)
        wrong = {each for each in news if each not in final}
        found.not_withdrawn += sum(each[:2] not in withdrawn for each in wrong)
        found.withdrawn += len(withdrawn)
        found.bad_signatures += receiver.bad_signatures
        found.altered += receiver.altered
        found.taken_twice += sum(n - 1 for n in receiver.taken.values() if n)
        self.judge_repeats(receiver)
        found.not_taken_at_first += receiver.not_taken
        receiver.bad_signatures = receiver.altered = receiver.not_taken = 0

    def judge_repeats(self, receiver: Receiver) -> None:
        """Why each message that was taken again was sent again."""
        for takings in receiver.taken_at.values():
            for first, again in pairwise(takings):
                self._judge_repeat(first, again)

    def _judge_repeat(self, first: Taking, again: Taking) -> None:
        found = self.findings
        killed_at = self.killed_at[first.life]
        if first.life == again.life or killed_at == inf:
            has_waited = again.sent_at - first.sent_at >= _TIMEOUT_S
            found.timed_out += has_waited
            found.unexplained += not has_waited
        elif killed_at <= first.answered_at:
            found.under_way_at_kill += 1
        else:
            found.answered_before_kill += 1
            found.windows_s.append(round(killed_at - first.answered_at, 4))
            found.window_s = max(found.windows_s)


def seen(store: Path) -> tuple[set[Told], set[Told]]:
    """What the store saw appear, change and go: at first, and in the light of all it knows."""
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute(
            "SELECT p.url, o.at, o.first_kind, o.kind FROM finding AS o "
            "JOIN page AS p ON p.id = o.page_id WHERE p.role = 'page' ORDER BY o.at, o.id"
        ).fetchall()
    first: set[Told] = set()
    final: set[Told] = set()
    before: dict[str, str] = {}
    for url, at, first_kind, kind in rows:
        was, before[url] = before.get(url), kind
        when = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")
        for kinds, each in ((first, first_kind), (final, kind)):
            if each in KINDS and (each != "gone" or was in _CONTENT):
                kinds.add((url, when.replace("+00:00", "Z"), each))
    return first, final


def measure(kills: int, seed: int, directory: Path) -> dict[str, Any]:
    """Kill, and judge what the receivers took by what the stores saw."""
    started_at = monotonic()
    quick = Receiver("quick", errors=0.05, hangs=0.0, seed=seed)
    hanging = Receiver("hanging", errors=0.0, hangs=0.05, seed=seed + 1)
    with (
        living(Load(), directory / "exchanges.log") as web,
        receiving(quick), receiving(hanging),
    ):  # fmt: skip
        trials = Trials(web, [quick, hanging], directory, seed)
        trials.run(kills)
    return asdict(trials.findings) | {"seconds": round(monotonic() - started_at, 1)}
