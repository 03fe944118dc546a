"""A daemon on loopback under forged WebSub notifications and pings, and the same in peace.

Both runs go on with a store that a run before has filled; one page of it is subscribed to, so that
signatures have something to be wrong about.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.living_web import Load, living
from tests.integration.hubs import free_port

_ROOT = Path(__file__).parents[2]
_LOAD = Load(hosts=40, pages_per_host=40, days_per_s=0.01)
_PER_DAY = 10 * 86_400.0
_FILL_S = 30.0
_TOKEN = "benchmark-callback"


def _started(module: str, order: Mapping[str, Any]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"scripts.benchmarks.{module}"], cwd=_ROOT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(order))
    process.stdin.close()
    process.stdin = None
    return process


def _ended(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    said, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"ended with {process.returncode}: {(errors or '')[-2000:]}")
    result: dict[str, Any] = json.loads(said)
    return result, errors or ""


def _subscribe(db: Path) -> str:
    """Let a page of the store have a subscription; the page."""
    with closing(sqlite3.connect(db)) as connection, connection:
        row = connection.execute(
            "SELECT id, url FROM page WHERE last_kind = 'new' AND depth = 0 LIMIT 1"
        ).fetchone()
        connection.execute(
            "INSERT INTO subscription VALUES (?, 'http://127.0.0.1:9/', ?, ?, ?, 'active', ?, "
            "NULL, ?, 0, NULL)",
            (*row, _TOKEN, "s" * 43, time.time() + 1e6, time.time() + 1e6),
        )
    return str(row[1])


def measured(seconds: float, rate: float, directory: Path) -> dict[str, object]:
    """The figures, in JSON values."""
    db = directory / "forged.db"
    with living(_LOAD, directory / "web.log") as web:
        order = {"db": str(db), "seeds": list(web.seeds()), "budget": _PER_DAY, "port": free_port()}
        command.say("filling a store")
        _ended(_started("signals_forged_daemon", order | {"seconds": _FILL_S}))
        site = _subscribe(db)
        order["seconds"] = seconds + 10.0
        command.say("a run in peace")
        peace, _ = _ended(_started("signals_forged_daemon", order))
        command.say("a run under forged signals")
        daemon = _started("signals_forged_daemon", order)
        _wait_for(int(str(order["port"])))
        flood = {
            "port": order["port"], "callback": f"/websub/{_TOKEN}", "site": site,
            "seconds": seconds, "rate": rate,
        }  # fmt: skip
        answers, _ = _ended(_started("signals_forgery", flood))
        besieged, errors = _ended(daemon)
        keys = [each.url for each in web.asked() if each.url.endswith(".txt")]
    return {
        "seconds": seconds,
        "flood": answers,
        "refused_per_s": round(_refused(answers["answers"]) / seconds, 1),
        "peace": peace,
        "besieged": besieged,
        "added_p99_ms": round(besieged["fetch_late_ms"]["p99"] - peace["fetch_late_ms"]["p99"], 2),
        "goal_added_ms": 50.0,
        "key_requests": sum("robots" not in url for url in keys),
        "log_lines": _told(errors),
    }


def _refused(answers: Mapping[str, int]) -> int:
    return sum(n for status, n in answers.items() if status.isdigit())


def _told(errors: str) -> Sequence[str]:
    return [line for line in errors.splitlines() if "refused" in line]


def _wait_for(port: int) -> None:
    import socket

    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the daemon does not listen")


def figures(seconds: float = 60.0, rate: float = 1_000.0) -> dict[str, object]:
    """The benchmark: ``rate`` forged requests a second for so many seconds."""
    with command.workspace() as directory:
        return measured(seconds, rate, directory)
