"""kill -9 at random moments to any process of a daemon, and of crawls, with three shards on Ray.

Killed are, at random: the actor of a shard, the coordinator, the raylet, Ray's gcs_server, the
program that started them, or all at once, also while they start. Where the program ends the same
command is started again. Judged are:

- ``lost_observations``: what stood in a store once and does not any more;
- ``missing_pages``, ``waiting`` and ``in_two_shards``: in the end each page of the sites is known
  in one shard, and nothing waits to be told. Each page is linked from one page only;
- ``too_close``: requests that came to a host sooner after the one before than the delay but for
  ``tolerance_s``, which is what the server's own loop waits for one of two busy cores; and
  ``at_once``: those that came while another to that host was under way;
- ``ahead_minutes``: the most requests in any span of whole minutes beyond the budget's, in minutes
  of the budget: at most 1;
- ``left_behind``: processes that live on ``LEFT_S`` after the program that started them had ended,
  and ``folders``, its temporary ones.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from time import monotonic, sleep

from scripts.benchmarks import command
from scripts.benchmarks.linked_sites import Arrival, LinkedSites, arrivals, serving
from scripts.benchmarks.process_tree import MARK, Process, Tree, kill
from scripts.benchmarks.store_inspection import reading

SHARDS = 3
DELAY_S = 0.2
TOLERANCE_S = 0.05
LEFT_S = 60.0
_PER_S = 4.0
_QUIET_S = 240.0
#: How often what is killed; the program ends with those of the second row.
_SHARES = {"shard": 80, "coordinator": 12, "raylet": 2, "gcs": 2, "driver": 2, "all": 2}
_ENDING = frozenset({"raylet", "gcs", "driver", "all"})
_SITES = LinkedSites(hosts=16, pages=40)


@dataclass(slots=True)
class Findings:
    """What went wrong, and how much there was to go wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    while_starting: int = 0
    commands: int = 0
    observations: int = 0
    lost_observations: int = 0
    missing_pages: int = 0
    waiting: int = 0
    in_two_shards: int = 0
    requests: int = 0
    too_close: int = 0
    closest_s: float = 9.0
    at_once: int = 0
    ahead_minutes: float = -9.0
    of_budget: float = 0.0
    left_behind: list[str] = field(default_factory=list)
    folders: int = 0
    ends_within_s: dict[str, list[float]] = field(default_factory=dict)
    clear_within_s: list[float] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Round:
    """A store, and the command that is killed again and again on it."""

    def __init__(self, verb: str, folder: Path, rng: Random, found: Findings, until: float) -> None:
        self._verb, self._folder, self._rng, self._found = verb, folder, rng, found
        self._until, self._seen = until, set[tuple[int, int, str, float]]()
        self._tree = Tree(f"{os.getpid()} {folder.name}")
        self._driver: subprocess.Popen[bytes] | None = None
        self._temporary = Path(mkdtemp(prefix="fk", dir="/tmp"))
        self._began_at = 0.0

    def run(self, kills: int) -> int:
        """Kill so many times at most, let it come to rest, and judge; return how many it were."""
        log = self._folder / "log"
        with serving(_SITES, log) as port:
            self._settle(port)
            began_at, done = monotonic(), 0
            try:
                while done < kills and monotonic() < self._until:
                    done += self._one()
                    if self._is_done:
                        break
                self._rest(port)
                self._stop()
            finally:
                self._tree.kill()
            self._judge(port, log, monotonic() - began_at)
        return done

    def _settle(self, port: int) -> None:
        (self._folder / "freshet.toml").write_text(_SITES.settings(), "utf-8")
        (self._folder / "sites.txt").write_text("\n".join(_SITES.roots(port)) + "\n", "utf-8")

    @property
    def _is_done(self) -> bool:
        """Whether a crawl has come to its end."""
        return self._driver is not None and self._driver.poll() == 0

    def _start(self) -> None:
        program = str(Path(sys.executable).with_name("freshet"))
        budget = ["--budget", f"{_PER_S * 3600:.0f}/hour"] if self._verb == "daemon" else []
        options = ["--db", str(self._folder / "store"), "--shards", str(SHARDS), "--json",
                   "--config", str(self._folder / "freshet.toml"), "--delay", str(DELAY_S),
                   "--sites", str(self._folder / "sites.txt"), *budget]  # fmt: skip
        if self._verb == "crawl" and self._found_run():
            options.append("--resume")
        with (self._folder / "errors").open("ab") as errors:
            self._driver = subprocess.Popen(
                [program, self._verb, *options], stdout=subprocess.DEVNULL, stderr=errors,
                env=os.environ | {MARK: self._tree.mark, "TMPDIR": str(self._temporary)},
                start_new_session=True,
            )  # fmt: skip
        self._found.commands += 1
        self._began_at = monotonic()

    def _found_run(self) -> bool:
        return any((self._folder / "store").glob("*.db"))

    def _one(self) -> int:
        """Start the command if it has ended, wait, and kill; return the number of kills."""
        if self._driver is None or self._driver.poll() is not None:
            self._start()
            early = self._rng.random() < 0.25
            if not early:
                self._wait_for("shard", 60.0)
        else:
            early = False
        self._pause(self._rng.uniform(0.0, 15.0) if early else self._rng.expovariate(1 / 3.5))
        if self._driver is None or self._driver.poll() is not None:
            self._ended("itself", monotonic())
            return 0
        what = self._rng.choices(list(_SHARES), list(_SHARES.values()))[0]
        alive = self._tree.alive()
        chosen = alive if what == "all" else [it for it in alive if it.role == what]
        if not chosen:
            return 0
        at = monotonic()
        if what == "all":
            for process in chosen:
                kill(process)
        else:
            kill(self._rng.choice(chosen))
        self._found.kills[f"{self._verb}: {what}"] += 1
        self._found.while_starting += early
        self._follow()
        if what in _ENDING:
            self._ended(what, at)
        return 1

    def _pause(self, seconds: float) -> None:
        end = monotonic() + seconds
        while monotonic() < end and self._driver is not None and self._driver.poll() is None:
            sleep(min(0.1, max(0.0, end - monotonic())))
            self._tree.alive()

    def _wait_for(self, role: str, seconds: float) -> list[Process]:
        end = monotonic() + seconds
        while monotonic() < end and self._driver is not None and self._driver.poll() is None:
            if found := [it for it in self._tree.alive() if it.role == role]:
                return found
            sleep(0.2)
        return []

    def _ended(self, what: str, at: float) -> None:
        """Wait for the end of the program, and of all that it started."""
        assert self._driver is not None
        while self._driver.poll() is None and monotonic() < at + 2 * LEFT_S:
            sleep(0.1)
            self._tree.alive()
        if self._driver.poll() is None:
            self._found.problems.append(f"{self._verb} lives on after the kill of {what}")
        took = round(monotonic() - at, 1)
        self._found.ends_within_s.setdefault(what, []).append(took)
        self._say()
        # As often as not the same command is started at once.
        if self._rng.random() < 0.5 and self._driver.poll() is not None and what != "itself":
            return
        self._clear()

    def _clear(self) -> None:
        at = monotonic()
        while (alive := self._tree.alive()) and monotonic() < at + LEFT_S:
            sleep(0.2)
        self._found.clear_within_s.append(round(monotonic() - at, 1))
        self._found.left_behind += [f"{it.role}: {it.title[:60]}" for it in alive]
        self._found.folders += len(list(self._temporary.glob("freshet-*")))
        self._tree.kill()

    def _say(self) -> None:
        """Count the last line of a command that has ended."""
        errors = self._folder / "errors"
        lines = errors.read_text("utf-8", "replace").splitlines()
        code = "none" if self._driver is None else self._driver.poll()
        last = [it for it in lines if it.startswith("freshet:")][-1:] if code == 1 else []
        self._found.said[f"exit {code} {''.join(last)[:150]}"] += 1
        if any(it.startswith("Traceback") for it in lines):
            self._found.problems.append("a traceback: " + " | ".join(lines[-4:])[:400])
        errors.rename(errors.with_name(f"errors-{self._found.commands}"))

    def _follow(self) -> None:
        now = self._observations()
        self._found.lost_observations += len(self._seen - now)
        self._seen |= now

    def _observations(self) -> set[tuple[int, int, str, float]]:
        found = set[tuple[int, int, str, float]]()
        for shard, rows in self._rows(
            "SELECT o.id, p.url, o.at FROM observation AS o JOIN page AS p ON p.id = o.page_id"
        ):
            found |= {
                (shard, int(str(number)), str(url), float(str(at))) for number, url, at in rows
            }
        return found

    def _rows(self, sql: str) -> list[tuple[int, Sequence[tuple[object, ...]]]]:
        found: list[tuple[int, Sequence[tuple[object, ...]]]] = []
        for shard in range(SHARDS):
            path = self._folder / "store" / f"{shard:04}.db"
            if not path.exists():
                continue
            try:
                with reading(path) as db:
                    found.append((shard, db.execute(sql).fetchall()))
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    self._found.problems.append(f"{path.name}: {error}")
        return found

    def _own(self) -> list[set[str]]:
        """Return the pages of each shard but for those of others."""
        sql = "SELECT url FROM page WHERE held_back IS NOT 'shard' AND role = 'page'"
        return [{str(url) for (url,) in rows} for _, rows in self._rows(sql)]

    def _open(self, port: int) -> tuple[int, int]:
        """Return how many pages are not known, and how many wait to be told."""
        known = set[str]().union(*self._own())
        waiting = sum(
            int(str(rows[0][0])) for _, rows in self._rows("SELECT count(*) FROM outgoing")
        )
        return len(_SITES.urls(port) - known), waiting

    def _rest(self, port: int) -> None:
        """Wait until nothing is left to find, or for a while."""
        end = monotonic() + _QUIET_S
        while monotonic() < end and not self._is_done:
            if self._driver is None or self._driver.poll() is not None:
                self._start()
            if self._verb == "daemon" and self._open(port) == (0, 0):
                break
            sleep(1.0)
            self._tree.alive()

    def _stop(self) -> None:
        if self._driver is None or self._is_done:
            return
        at = monotonic()
        self._driver.send_signal(signal.SIGINT)
        try:
            code = self._driver.wait(LEFT_S)
        except subprocess.TimeoutExpired:
            self._found.problems.append("Ctrl-C does not end it within a minute")
        else:
            self._found.ends_within_s.setdefault("Ctrl-C", []).append(round(monotonic() - at, 1))
            if code:
                self._found.problems.append(f"Ctrl-C: exit {code}")
        self._clear()

    def _judge(self, port: int, log: Path, seconds: float) -> None:
        found = self._found
        self._follow()
        found.observations += len(self._seen)
        missing, waiting = self._open(port)
        found.missing_pages += missing
        found.waiting += waiting
        own = self._own()
        in_shards = Counter(url for urls in own for url in urls)
        found.in_two_shards += sum(number > 1 for number in in_shards.values())
        for shard, rows in self._rows("PRAGMA integrity_check"):
            if [row[0] for row in rows] != ["ok"]:
                found.problems.append(f"shard {shard}: {rows[0][0]}")
        asked = arrivals(log)
        found.requests += len(asked)
        _judge_hosts(asked, found)
        if self._verb == "daemon":
            found.ahead_minutes = max(found.ahead_minutes, round(ahead(asked), 2))
            found.of_budget = round(max(found.of_budget, len(asked) / (_PER_S * seconds)), 2)


def _judge_hosts(asked: Sequence[Arrival], found: Findings) -> None:
    before: dict[str, Arrival] = {}
    for each in asked:
        if (last := before.get(each.host)) is not None:
            apart = each.at - last.at
            found.closest_s = min(found.closest_s, round(apart, 3))
            found.too_close += apart < DELAY_S - TOLERANCE_S
            found.at_once += each.at < last.ended_at
        before[each.host] = each


def ahead(asked: Sequence[Arrival]) -> float:
    """Return the most requests in a span of whole minutes beyond the budget's, in minutes of it."""
    if not asked:
        return 0.0
    first, most = asked[0].at, 0.0
    counts = Counter(int(it.at - first) for it in asked)
    sums = [0]
    for second in range(max(counts) + 1):
        sums.append(sums[-1] + counts[second])
    for begin in range(len(sums)):
        for end in range(begin + 60, len(sums) + 60, 60):
            made = sums[min(end, len(sums) - 1)] - sums[begin]
            most = max(most, made / (60 * _PER_S) - (end - begin) / 60)
    return most


def measure(
    kills: int, seed: int, directory: Path, limit_s: float, share: float
) -> dict[str, object]:
    """Kill so often, a share of it a daemon, else crawls; within a time."""
    rng, found = Random(seed), Findings()
    began_at = monotonic()
    until, done, number = began_at + limit_s, 0, 0
    of_daemon = round(kills * share)
    while done < kills and monotonic() < until:
        verb = "daemon" if done < of_daemon else "crawl"
        folder = directory / f"round{number}"
        folder.mkdir()
        left = min(120, of_daemon - done) if verb == "daemon" else kills - done
        done += Round(verb, folder, rng, found, until).run(left)
        number += 1
        command.say(f"{done} kills in {monotonic() - began_at:.0f} s, {found.problems}")
    return {"killed": done, "rounds": number, "seconds": round(monotonic() - began_at),
            "shards": SHARDS, "delay_s": DELAY_S, "tolerance_s": TOLERANCE_S,
            "budget_per_s": _PER_S, "seed": seed,
            **{each.name: getattr(found, each.name) for each in fields(found)}}  # fmt: skip


def main() -> None:
    """Kill, and print the result."""
    parser = command.arguments(__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=2400.0, metavar="SECONDS",
                        help="kill no more after that time")  # fmt: skip
    parser.add_argument("--daemons", type=float, default=0.8, metavar="SHARE",
                        help="so many of the kills hit a daemon, the others crawls")  # fmt: skip
    given = parser.parse_args()
    with command.workspace() as directory:
        command.finish(
            measure(given.kills, given.seed, directory, given.limit, given.daemons), given.output
        )
