"""Policies side by side on the store's past, judged by a process of its own."""

import asyncio
import json
import os
import pickle
import resource
import shlex
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import time
from typing import Any, Final

from aiohttp import web

from freshet.config.settings import Settings
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.extensions.dashboard.request import DashboardRequest, value_of
from freshet.crawler.extensions.lab.charts import thinned
from freshet.crawler.extensions.lab.counterfactual import DEFAULT_POLICIES, HEADER, ask, row_of
from freshet.crawler.run.orders import parsed
from freshet.crawler.run.terminal import amount, percent, size, told_in_one_line
from freshet.crawler.service.http import FORM, Answer, leading
from freshet.scheduler import PolicyError
from freshet.scheduler.evaluate.verdicts import PolicyVerdict
from freshet.scheduler.policy import names
from freshet.storage.stores import open_stores

#: Comparisons that are kept, and policies and budgets of one.
_KEPT, _MOST = 5, 6
#: Address space of the process: the past of 100,000 pages takes half of it.
_MEMORY_BYTES, _LINE_BYTES = 3 << 30, 1 << 22
_DAY_S, _ROOT = 86_400.0, Path(__file__).parents[4]
#: A cost's name, its unit, its place in a verdict, and its scale.
_COSTS: Final = (("Stale copies", " %", "binary", 100.0), ("Harmonic cost", "", "harmonic", 1.0))


@dataclass(slots=True)
class _Run:
    """A comparison, with what :func:`ask` takes; ``failed`` is set at the end, as is ``result``."""

    order: tuple[Path, list[str], list[float], float, Settings]
    form: Mapping[str, str]
    command: str
    at: float
    progress: dict[str, float] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None
    failed: str = ""


class Comparisons:
    """The comparisons that readers order: one at a time; the last few are kept."""

    path, label, template = "/policies", "Policies", "policies.html"

    def __init__(self, db: Path, settings: Settings) -> None:
        """Compare on the store at ``db``, or on one of its shards."""
        self._db, self._settings = db.absolute(), settings
        self._runs = deque[_Run](maxlen=_KEPT)
        self._task: asyncio.Task[None] | None = None
        self.routes: Sequence[web.AbstractRouteDef] = [web.post(self.path, self._order)]

    async def shown(self, asked: DashboardRequest) -> Mapping[str, object]:
        """Return the form, and the comparison that is asked for, or the newest one."""
        wanted, newest = asked.query.get("run"), self._runs[0] if self._runs else None
        run = next((it for it in self._runs if str(it.at) == wanted), newest)
        typed = {"policies": " ".join(DEFAULT_POLICIES), "budgets": "", "seen": "10", "shard": "0"}
        given = {**(run.form if run else {}), **asked.query}
        typed |= {name: given[name] for name in typed if name in given}
        return {
            "known": names(), "typed": typed, "command": self._ordered(typed).command,
            "run": run, "runs": list(self._runs), "header": HEADER,
            "shards": len(open_stores(self._db).paths),
        }  # fmt: skip

    async def _order(self, request: web.Request) -> Answer:
        """Begin the comparison that a form asks for, if none goes on."""
        run = self._ordered(request[FORM])
        if self._task is not None and not self._task.done():
            raise UsageError("a comparison goes on; wait until it has ended")
        self._runs.appendleft(run)
        # It ends with the loop at the latest.
        self._task = asyncio.create_task(_follow(run))
        return leading("/policies")

    def _ordered(self, form: Mapping[str, str]) -> _Run:
        policies, typed = form.get("policies", "").split(), form.get("budgets", "").split()
        paths = open_stores(self._db).paths
        accepted = "such as 1000/day or 50/hour, with blanks between them"
        budgets = value_of(
            form, "budgets", lambda _: list(map(parsed, typed)), accepted, list[float]()
        )
        seen = value_of(form, "seen", float, "0 to 90 %", 10.0) / 100
        shard = value_of(form, "shard", int, f"shards below {len(paths)}", 0)
        if not (1 <= len(policies) <= _MOST and len(budgets) <= _MOST):
            raise UsageError(f"policies, budgets: accepted are up to {_MOST} of each")
        if not (0 <= seen <= 0.9 and 0 <= shard < len(paths)):
            raise UsageError(f"accepted are seen=0 to 90 %, and shard below {len(paths)}")
        told = [("policy", it) for it in policies] + [("budget", it) for it in typed]
        options = (f"--{name} {shlex.quote(it)}" for name, it in [*told, ("shown", f"{seen:g}")])
        command = f"freshet replay {shlex.quote(str(paths[shard]))} {' '.join(options)}"
        return _Run((paths[shard], policies, budgets, seen, self._settings), form, command, time())


async def _follow(run: _Run) -> None:
    """Let a process make a comparison, and note how far it is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", f"from {__name__} import work; work()",
        stdin=PIPE, stdout=PIPE, stderr=STDOUT, cwd=_ROOT, limit=_LINE_BYTES,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - pipes
    try:
        process.stdin.write(pickle.dumps(run.order))
        process.stdin.write_eof()
        async for line in process.stdout:
            if line.startswith(b"["):
                name, told = json.loads(line)
                run.progress |= {name: told} if name else {}
                run.result = run.result if name else told
            else:
                run.failed = run.failed or line.decode("utf-8", "replace")
    except BaseException:
        process.kill()
        raise
    finally:
        code = await process.wait()
        run.failed = run.failed or f"its process ended with status {code}; is memory short?"


def work() -> None:
    """Compare as standard input orders; write what is done (a name, a share), "" and the result."""
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    db, policies, budgets, seen, settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - parent's
    told = dict[str, float]()

    def tell(name: str, share: float) -> None:
        if share >= told.get(name, -1.0) + 0.01:
            told[name] = float(share)
            print(json.dumps([name, told[name]]), flush=True)  # noqa: T201 - to our parent

    # The first line that is not JSON says why it failed.
    with told_in_one_line(PolicyError):
        try:
            it = ask(db, policies, budgets, seen, settings, tell=tell).comparison
        except MemoryError:
            why = f"more than {size(_MEMORY_BYTES)} of memory needed"
            raise CrawlError(
                f"{why}; run `freshet replay` in a shell, without this limit"
            ) from None
    budgets = groupby(it.verdicts, key=lambda each: each.budget)
    result = {
        "pages": it.pages, "captures": it.captures, "gap": amount(it.capture_gap_days),
        "start": it.start * _DAY_S, "end": it.end * _DAY_S,
        "budgets": [_of_budget(budget, list(some), it.start) for budget, some in budgets],
    }  # fmt: skip
    print(json.dumps(["", result]))  # noqa: T201 - to our parent


def _of_budget(budget: float, verdicts: Sequence[PolicyVerdict], start: float) -> dict[str, Any]:
    least, curves = verdicts[0], []
    for name, unit, cost, scale in _COSTS:
        days = [thinned(getattr(it, cost).daily * scale, start) for it in verdicts]
        rows = [
            # Of each policy the cost of early changes, and its interval.
            [at * _DAY_S, *(float(of[place, k]) for _, of in days for k in (1, 0, 1))]
            for place, at in enumerate(days[0][0])
        ]
        curves.append({"name": name, "unit": unit, "rows": rows})
    return {
        "budget": amount(budget), "policies": [it.policy for it in verdicts], "curves": curves,
        "least": [amount(least.harmonic.clairvoyant), percent(least.binary.clairvoyant)],
        "rows": [row_of(it) for it in verdicts],
    }  # fmt: skip
