"""Shards as Ray's actors: Ray places, starts and watches them; what lasts is in their stores.

Each shard is a crawl or a daemon in an actor with its event loop. Shards send pages to one another
directly, and report to the coordinator, another actor. Ray restarts an actor that was killed; it
continues with its store, and the former writer of the store has lost its lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from io import StringIO
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Any, Final, TypeVar

import ray
from prometheus_client import generate_latest
from ray._private.services import canonicalize_bootstrap_address_or_die, psutil  # type: ignore[attr-defined]  # psutil comes with Ray
from ray._raylet import AuthenticationTokenLoader, Config, GcsClient  # type: ignore[attr-defined]  # its stub leaves them out
from ray.exceptions import AuthenticationError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from tenacity import Retrying, stop_after_attempt, wait_exponential

from freshet import __version__
from freshet.config import ConfigError
from freshet.config.settings import Settings
from freshet.crawler.errors import CrawlError, ShardUnreachable, UnknownPage, UsageError
from freshet.crawler.extensions.shards.shard import MANY, Coordinator, Shard
from freshet.crawler.read.documents import Documents
from freshet.crawler.read.library import Answers, Library, Read
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.orders import CrawlReport, DaemonOrder, Reread
from freshet.crawler.run.service import Service
from freshet.crawler.run.wiring import Observer
from freshet.crawler.service.http import Health
from freshet.scheduler import PolicyError
from freshet.scheduler.queue.rankers import ranker_of
from freshet.storage.errors import StoreError
from freshet.storage.shards import Shards
from freshet.storage.stores import is_folder, none_answers

T = TypeVar("T")
Order = TypeVar("Order", CrawlOrder, DaemonOrder)

#: Seconds after which another actor counts as away.
_ANSWERS_S: Final = 20.0
#: Seconds until a shard that failed is tried again.
_AGAIN_S: Final = 10.0
#: Seconds between two states of a shard.
_POLL_S: Final = 0.5
_CONNECTS_S: Final = 10.0
#: Seconds without an answer of any shard after which Ray counts as lost.
_LOST_S: Final = 60.0
#: Ray's store of objects, which are only messages.
_STORE_BYTES: Final = 80 * 1024 * 1024
#: Starts of Ray on one machine before that is given up.
_STARTS: Final = 4
#: What is in the titles of its processes.
_RAYS: Final = ("ray::", "/site-packages/ray/")
_COORDINATOR: Final = "coordinator"
_ENDED: Final = "Ray has ended; the same command continues"
_GONE: Final = "its process or its machine is gone"
_WRONG: Final = (StoreError, CrawlError, PolicyError, ConfigError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedJob:
    """The work of all shards: a crawl's or a daemon's ``order`` with the folder as its store.

    ``watching`` yields, inside an actor, what observes a run.
    """

    shards: Shards
    settings: Settings
    order: CrawlOrder | DaemonOrder
    watching: Callable[[], AbstractContextManager[Callable[[Live], Observer]]]

    @property
    def namespace(self) -> str:
        """The name that separates the actors of this store from others in Ray."""
        return f"freshet {os.path.realpath(self.shards.folder)}"


def _of_one(order: Order, shards: Shards, shard: int) -> Order:
    """Return the order of a shard; until shares are known, all shards have the same."""
    if isinstance(order, CrawlOrder):
        return replace(order, db=shards.path(shard))
    return replace(order, db=shards.path(shard), budget=order.given_budget / shards.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardState:
    """A shard at one moment; ``why`` is the reason if it is down.

    ``order`` counts reloads, ``fetches`` are requests, ``kinds`` counts results, ``share`` and
    ``price`` are those of the coordinator, ``lines`` are log lines since the last state.
    """

    why: str = ""
    lease: int = 0
    order: int = 0
    fetches: int = 0
    pages: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    share: float | None = None
    price: float | None = None
    next_url: str | None = None
    told: int = 0
    idle: bool = False
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Held:
    """A shard's store on a machine: its lease, and its last run and whether that is unfinished."""

    epoch: int
    run_id: int
    is_unfinished: bool


# -- inside the actors -----------------------------------------------------------


class _Coordinator:
    """The coordinator in an actor."""

    def __init__(self, per_day: float, shards: int, namespace: str) -> None:
        self._coordinator = Coordinator(per_day, shards, time.monotonic())
        self._unasked, self._namespace = list(range(shards)), namespace

    async def report(
        self, shard: int, message: bytes, share: float | None
    ) -> tuple[float, float] | None:
        """Take a shard's demand and share; return the price and the new share."""
        # After a restart the others are unknown; they would report within a minute.
        for one in self._unasked:
            with suppress(ValueError):
                ray.get_actor(_name(one), self._namespace).report_soon.remote()
        self._unasked = []
        return self._coordinator.report(shard, message, share, time.monotonic())

    async def change(self, per_day: float) -> None:
        """Change the budget."""
        self._coordinator.per_day = per_day


class _Shard(Shard):
    """A shard in an actor. Errors for users are returned, because others cannot be pickled."""

    def __init__(self, job: ShardedJob, number: int, held: _Held | None) -> None:
        super().__init__(job.shards, number, job.settings.politeness.groups)
        self._job, self._held = job, held
        self._live: Live | None = None
        self._service = Service()
        self._documents: Documents | None = None
        self._order = 0
        sys.stderr = self._lines = _Lines()
        self._peers: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"shard {self.number}"

    async def run(self) -> CrawlReport | str:
        """Crawl or keep until the end; return the report, or in one line why it failed."""
        job = self._job
        try:
            require_own_raylet()
        except CrawlError as error:
            return str(error)
        report = partial(self._call, _COORDINATOR, "report", self.number)
        talking = asyncio.create_task(self.talk(self._send, report))
        try:
            if not is_folder(job.shards.folder):
                job.shards.write()
            with job.watching() as watch:
                seen, mine = partial(self._watch, watch), (job.shards, self.number)
                if isinstance(job.order, DaemonOrder):
                    kept = _of_one(job.order, *mine)
                    async with Service() as self._service:
                        return await keep(
                            job.settings, kept, watch=seen, embedded=True, shard=self,
                            service=self._service,
                        )  # fmt: skip
                order = replace(_of_one(job.order, *mine), resume=self._resumes(job.order))
                return await crawl(job.settings, order, watch=seen, embedded=True, shard=self)
        except _WRONG as error:
            return str(error)
        finally:
            talking.cancel()

    def _resumes(self, order: CrawlOrder) -> bool | None:
        """Return whether to go on with the last run, which may be this crawl's, begun before."""
        now, before = _held(self._job.shards.path(self.number)), self._held or _Held(0, 0, False)
        if now is None or not now.run_id:
            # All were killed before this one had begun a run: it begins one.
            return None
        if now.epoch == before.epoch:
            return order.resume
        # An actor before this one was killed.
        goes_on = before.is_unfinished and order.resume is not False
        return True if goes_on or now.run_id > before.run_id else order.resume

    def _watch(self, watch: Callable[[Live], Observer], live: Live) -> Observer:
        self._live = live
        return watch(live)

    async def _send(self, method: str, to: int, message: bytes) -> bool:
        with suppress(ShardUnreachable):
            return bool(await self._call(_name(to), method, self.number, message))
        return False

    async def _call(self, name: str, method: str, *given: object) -> Any:
        """Return what another actor answers; raises Away if it does not."""
        try:
            if name not in self._peers:
                self._peers[name] = ray.get_actor(name, self._job.namespace)
            async with asyncio.timeout(_ANSWERS_S):
                return await getattr(self._peers[name], method).remote(*given)
        except (RayError, ValueError, TimeoutError) as error:
            raise ShardUnreachable from error

    async def state(self) -> ShardState:
        """Return the state of the shard."""
        lines = self._lines.take()
        live, running = self._live, self.running
        if live is None or running is None:
            return ShardState(lines=lines)
        now = running.clock.now()
        snapshot = live.snapshot(now) if live.snapshot is not None else None
        return ShardState(
            lease=running.database.lease or 0,
            order=self._order,
            fetches=running.pool.pacer.spent,
            pages=live.tally.pages,
            kinds=dict(live.tally.kinds),
            share=self.share,
            price=self.price,
            next_url=None if snapshot is None else snapshot.next_url,
            told=self.told,
            idle=snapshot is None and await self.idle(),
            lines=lines,
        )

    async def service(self) -> tuple[Health, bytes]:
        """Return the health, and the metrics in the text format."""
        return await self._service.health(), generate_latest(self._service.metrics.registry)

    async def read(self, read: Read[T]) -> T | StoreError:
        """Return the result of a read in the store on this machine, or the error."""
        if self._documents is None:
            path = self._job.shards.path(self.number)
            settings = self._job.settings
            self._documents = Documents(path, parser_of(settings), settings.crawl.purpose)
        try:
            return await read(self._documents)
        except StoreError as error:
            return error

    async def reload(self, order: DaemonOrder, number: int) -> None:
        """Follow another order, the ``number``-th one."""
        running = self.running
        if running is not None and running.reload is not None:
            self._order = number
            mine = _of_one(order, self._job.shards, self.number)
            running.reload(lambda: mine)

    async def report_soon(self) -> None:
        """Report to the coordinator, which has been started again."""
        self.soon.set()

    async def stop(self, at_once: bool) -> None:
        """Take no new work, and with ``at_once`` cancel requests under way."""
        if self._live is not None:
            self._live.pool.stop(at_once=at_once)


class _Lines(StringIO):
    """Standard error of an actor: its lines wait for the program that started it."""

    def take(self) -> list[str]:
        """Return all whole lines, and forget them."""
        text, last, rest = self.getvalue().rpartition("\n")
        self.seek(0)
        self.truncate()
        self.write(rest)
        # Ray names the actor to readers of its own logs.
        return [it for it in (text + last).splitlines() if not it.startswith(":actor_name:")]


def _name(shard: int) -> str:
    return f"shard {shard}"


def _held(path: Path) -> _Held | None:
    """Return the files of a shard on a machine, None without its store."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            epoch = db.execute("SELECT epoch FROM lease").fetchone() or (0,)
            sql = "SELECT id, ended_at IS NULL FROM crawl_run ORDER BY id DESC LIMIT 1"
            run = db.execute(sql).fetchone() or (0, 0)
    except sqlite3.Error:
        # An older schema, or not a store: opening it reports that.
        return _Held(0, 0, is_unfinished=False)
    return _Held(epoch[0], run[0], bool(run[1]))


def _holdings(shards: Shards) -> tuple[str, Shards | None, dict[int, _Held]]:
    """Return of a machine its Freshet, its ``shards.toml`` and its shards."""
    own = Shards.read(shards.folder) if is_folder(shards.folder) else None
    found = {shard: _held(path) for shard, path in enumerate(shards.paths())}
    return __version__, own, {shard: it for shard, it in found.items() if it is not None}


# -- the program that starts them ------------------------------------------------


def _require_listening(address: str) -> None:
    """Raise CrawlError if no process listens at an address; Ray itself tries for over a minute."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECTS_S).close()
    except OSError as error:
        why = error.strerror or error
        raise CrawlError(
            f"--ray {address}: nobody listens there: {why}; start it there (`ray start --head`)"
        ) from error


@contextmanager
def connected(address: str | None, store: Path) -> Iterator[None]:
    """Start Ray on this machine for a store that is locked, or join the cluster at an address.

    Raises:
        CrawlError: Ray cannot be started, or reached.
    """
    # By default Ray reports its use to its makers, prints each killed process on standard output,
    # and listens on all addresses of the machine.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001 - version pinned
    if address is None:
        ray._private.ray_constants.ENABLE_RAY_CLUSTER = False  # noqa: SLF001 - likewise
    if address is not None:
        _require_listening(address)
        _require_token(address)
    with _folder_of(store) as folder:
        local = {
            "num_cpus": 1, "include_dashboard": False, "object_store_memory": _STORE_BYTES,
            "_node_ip_address": "127.0.0.1", "_temp_dir": folder,
        }  # fmt: skip
        chosen = local if address is None else {"address": address}
        # A port that was free is perhaps taken by the time that Ray listens, and it gives itself
        # half a minute, in which a busy machine has not started its processes.
        tries = Retrying(
            stop=stop_after_attempt(_STARTS if address is None else 1),
            wait=wait_exponential(1, 10),
            before_sleep=lambda _: _end_ray(folder),
            reraise=True,
        )
        try:
            tries(ray.init, log_to_driver=False, logging_level=logging.ERROR, **chosen)
        except Exception as error:
            # Ray has no class for its failures here.
            where = "Ray cannot be started here" if address is None else f"--ray {address}"
            raise CrawlError(f"{where}: {str(error).strip().splitlines()[0]}") from error
        yield


def _require_token(address: str) -> None:
    """Refuse a cluster that lets everybody in who reaches it; join with the token from now on.

    Raises:
        CrawlError: the cluster wants no token, none is set here, or the cluster does not answer.
    """
    loader = AuthenticationTokenLoader.instance()
    try:
        place = address if ":" in address else canonicalize_bootstrap_address_or_die(address)
        # Without a token: who runs an open cluster could read it.
        _authenticate("disabled")
        GcsClient(address=place)
    except AuthenticationError:
        if not loader.has_token(ignore_auth_mode=True):
            raise CrawlError(
                f"--ray {address}: its token is not here: copy ~/.ray/auth_token from its first "
                "machine, readable by you alone"
            ) from None
    except (RayError, ConnectionError) as error:
        raise CrawlError(f"--ray {address}: {str(error).strip().splitlines()[0]}") from error
    else:
        raise CrawlError(
            f"--ray {address}: the cluster wants no token, so whoever reaches it can run programs "
            "as you: make one with `ray get-auth-token --generate`, copy ~/.ray/auth_token to all "
            "machines, and start Ray on them with RAY_AUTH_MODE=token"
        )
    finally:
        _authenticate("token")


def _authenticate(mode: str) -> None:
    os.environ["RAY_AUTH_MODE"] = mode
    Config.initialize("")


@contextmanager
def _folder_of(store: Path) -> Iterator[str]:
    """Make a temporary folder for Ray, named after the store, and end Ray after the block.

    Its parent folder is private to this user: Ray lets all users write to the folder itself.
    """
    name = f"freshet-{blake2b(os.path.realpath(store).encode(), digest_size=4).hexdigest()}-"
    # What a killed program has left.
    _clear(name)
    try:
        yield f"{mkdtemp(prefix=name)}/ray"
    finally:
        ray.shutdown()
        _clear(name)


def _clear(name: str) -> None:
    """Delete our folders of this name; end Ray's processes there, which may outlive it a minute."""
    for folder in Path(gettempdir()).resolve().glob(f"{name}*"):
        if folder.lstat().st_uid == os.getuid():
            _kill_ray(folder)
            rmtree(folder, ignore_errors=True)


def _kill_ray(folder: Path) -> None:
    """Kill Ray's processes that have files in a folder open."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            title = " ".join(process.cmdline())
            files = [Path(it.path) for it in process.open_files()]
            is_there = any(it.is_relative_to(folder) for it in files)
            if is_there and any(mark in title for mark in _RAYS):
                process.kill()


def _end_ray(folder: str) -> None:
    """End a start that failed, with its remaining processes, which would delay the next one."""
    ray.shutdown()
    _kill_ray(Path(folder))


def require_own_raylet() -> None:
    """Refuse to work for a raylet of another user, who has put its socket in the place of ours.

    Ray lets everybody write to the folder of a cluster.

    Raises:
        CrawlError: the socket is another user's.
    """
    node: Any = ray._private.worker._global_node  # noqa: SLF001 - Ray's version is pinned
    path = getattr(node, "raylet_socket_name", None)
    if path is not None and (owner := os.lstat(path).st_uid) != os.getuid():
        raise CrawlError(
            f"{path}: it belongs to another user ({owner}), who may have put it there: end Ray on "
            "this machine, and start it with --temp-dir in a folder that is yours alone"
        )


class Cluster:
    """The actors of a job, as the program that started them sees them.

    Attributes:
        states: the last state of each shard.
    """

    def __init__(self, job: ShardedJob, per_day: float) -> None:
        self._job, self._count = job, job.shards.count
        # Shards share processors, so none reserves one in Ray.
        self._options = {"namespace": job.namespace, "max_restarts": -1, "num_cpus": 0}
        made = ray.remote(_Coordinator).options(name=_COORDINATOR, **self._options)
        self._coordinator: Any = made.remote(per_day, self._count, job.namespace)
        self._actors: dict[int, Any] = {}
        self._runs: dict[int, asyncio.Task[CrawlReport | str]] = {}
        self._again_at = dict.fromkeys(range(self._count), 0.0)
        self._stops = self._orders = 0
        self._answered_at = time.monotonic()
        self._idle: list[tuple[int, int, int]] = []
        self.states = dict.fromkeys(range(self._count), ShardState())

    def stop(self) -> None:
        """Drain all shards, and at the second call cancel their requests."""
        self._stops += 1

    def reload(self, reread: Reread) -> None:
        """Send the current order to all shards, also to those that Ray starts again.

        Raises:
            CrawlError: the order is not valid; all shards continue with the last one.
            PolicyError: its policy is not known, or an option of it.
        """
        order = reread()
        ranker_of(order.policy, order.given_budget)
        self._job = replace(self._job, order=order)
        self._orders += 1

    async def each(
        self, method: str, given: Mapping[int, tuple[object, ...]]
    ) -> tuple[dict[int, Any], dict[int, str]]:
        """Return the answers of shards to a call, given arguments for each, and the others' errors.

        Raises UnknownPage if one answers that.
        """
        down = {n: it.why or "it is starting" for n, it in self.states.items() if not it.lease}
        up = [shard for shard in given if shard not in down]
        answers = await asyncio.gather(*(self._ask(one, method, *given[one]) for one in up))
        found = dict[int, Any]()
        for shard, answer in zip(up, answers, strict=True):
            if isinstance(answer, UnknownPage):
                raise answer
            if isinstance(answer, StoreError):
                down[shard] = str(answer)
            else:
                found[shard] = answer
        return found, {shard: down[shard] for shard in given if shard in down}

    async def _ask(self, shard: int, method: str, *given: object) -> Any:
        """Return the answer of a shard's actor, or a StoreError with the reason."""
        try:
            async with asyncio.timeout(_ANSWERS_S):
                return await getattr(self._actors[shard], method).remote(*given)
        except TimeoutError:
            return StoreError("it does not answer")
        except RayError:
            return StoreError(_GONE)

    async def run(self, show: Callable[[Mapping[int, ShardState]], None]) -> list[CrawlReport]:
        """Run all shards to their end, and return their reports; ``show`` receives each state.

        A shard of a daemon that fails is tried again every ten seconds; one of a crawl ends it.

        Raises:
            CrawlError: no shard could begin, a shard of a crawl failed, or Ray is lost.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        reports: dict[int, CrawlReport] = {}
        failed = ""
        while self._runs or (self._again_at and not self._stops):
            await self._begin()
            await asyncio.sleep(_POLL_S * max(1.0, self._count / MANY))
            await self._poll()
            for shard in [one for one, run in self._runs.items() if run.done()]:
                outcome = await self._runs.pop(shard)
                if isinstance(outcome, CrawlReport):
                    reports[shard] = outcome
                elif self._ends_all(shard, outcome, has_reports=bool(reports)):
                    goes_on = "; the same command continues" * (outcome == _GONE)
                    failed = failed or f"shard {shard}: {outcome}{goes_on}"
                    self._stops += 1
            show(self.states)
            await self._end()
        if failed:
            raise CrawlError(failed)
        return [reports[shard] for shard in sorted(reports)]

    def _ends_all(self, shard: int, why: str, *, has_reports: bool) -> bool:
        """Note that a shard has failed, and when it begins again; return whether all end for it."""
        self._again_at[shard] = time.monotonic() + _AGAIN_S
        self.states[shard] = replace(self.states[shard], why=why)
        has_begun = self._runs or has_reports or any(it.lease for it in self.states.values())
        return not isinstance(self._job.order, DaemonOrder) or not has_begun

    async def _begin(self) -> None:
        """Begin the shards that wait for it, each where its store lies."""
        now = time.monotonic()
        due = [shard for shard, at in self._again_at.items() if at <= now]
        if not due or self._stops:
            return
        places, order = await self._places(due), self._job.order
        has_run = self._actors or any(held and held.run_id for _, held in places.values())
        if isinstance(order, CrawlOrder) and order.resume and not has_run:
            raise UsageError(f"{order.db}: there is no run to resume; leave out --resume")
        for shard, (node, held) in places.items():
            del self._again_at[shard]
            if shard not in self._actors or self.states[shard].why == _GONE:
                self._actors[shard] = self._made(shard, node, held)
            run = self._actors[shard].run.options(max_task_retries=-1)
            self._runs[shard] = asyncio.create_task(_outcome(run.remote()))

    def _made(self, shard: int, node: str, held: _Held | None) -> Any:
        """Make the actor of a shard on a machine."""
        where = NodeAffinitySchedulingStrategy(node, soft=False)
        made = ray.remote(_Shard).options(
            name=_name(shard), scheduling_strategy=where, **self._options
        )
        return made.remote(self._job, shard, held)

    async def _places(self, shards: Sequence[int]) -> dict[int, tuple[str, _Held | None]]:
        """Return by shard its machine, or the one that should have it, and the files there."""
        nodes = [node["NodeID"] for node in await asyncio.to_thread(ray.nodes) if node["Alive"]]
        if not nodes:
            raise CrawlError(_ENDED)
        if len(nodes) == 1:
            found = {nodes[0]: _holdings(self._job.shards)}
        else:
            ask = ray.remote(_holdings).options(num_cpus=0)
            asked = [
                ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
                .remote(self._job.shards) for node in nodes
            ]  # fmt: skip
            found = dict(zip(nodes, await asyncio.gather(*asked), strict=True))
        for node, (version, own, _) in found.items():
            self._require_alike(node, version, own)
        load = {node: len(held) for node, (_, _, held) in found.items()}
        places: dict[int, tuple[str, _Held | None]] = {}
        for shard in shards:
            # Of copies the one that was taken last is the true one.
            having = [(held[shard].epoch, -load[node], node) for node, (_, _, held) in found.items()
                      if shard in held]  # fmt: skip
            node = max(having)[2] if having else min(nodes, key=lambda it: (load[it], it))
            load[node] += not having
            places[shard] = node, found[node][2].get(shard)
        return places

    def _require_alike(self, node: str, version: str, own: Shards | None) -> None:
        """Raise CrawlError where a machine has another Freshet, or another list of shards."""
        if version != __version__:
            raise CrawlError(
                f"machine {node[:8]} has Freshet {version}, this one {__version__}; "
                "install the same on both"
            )
        mine = self._job.shards
        if own is not None and (own.count, own.epoch) != (mine.count, mine.epoch):
            raise CrawlError(
                f"machine {node[:8]} has another shards.toml than this one; "
                "copy that of the higher epoch to the other"
            )

    async def _poll(self) -> None:
        """Ask all shards for their state."""
        if self._orders and isinstance(self._job.order, DaemonOrder):
            # Also one that was started again since.
            self._coordinator.change.remote(self._job.order.given_budget)
        now = time.monotonic()
        found = await asyncio.gather(*(self._state(shard) for shard in self._runs))
        self.states |= zip(self._runs, found, strict=True)
        if any(not state.why for state in found) or not found:
            self._answered_at = now
        started: Any = ray._private.worker._global_node  # noqa: SLF001 - version pinned
        gone = started is not None and started.dead_processes()
        if gone or now - self._answered_at > _LOST_S:
            raise CrawlError(_ENDED)

    async def _state(self, shard: int) -> ShardState:
        if self._stops:
            await self._ask(shard, "stop", self._stops > 1)
        state = await self._ask(shard, "state")
        if isinstance(state, StoreError):
            # A process takes its time to begin.
            why = str(state)
            why = why if self.states[shard].lease or why == _GONE else ""
            return replace(self.states[shard], why=why, lines=())
        if state.lease and state.order != self._orders:
            await self._ask(shard, "reload", self._job.order, self._orders)
        found: ShardState = state
        return found

    async def _end(self) -> None:
        """End a crawl when all shards are idle, and no message was between two of them."""
        order, states = self._job.order, self.states.values()
        most = self._job.settings.crawl.max_pages
        if isinstance(order, DaemonOrder):
            return
        if most and sum(state.pages for state in states) >= most:
            self._stops = max(self._stops, 1)
        # Two equal answers: the shards asked first received no page from those asked later.
        idle = [(it.lease, it.told, it.fetches) for it in states if it.idle and not it.why]
        if len(idle) == self._count and idle == self._idle:
            for actor in self._actors.values():
                with suppress(RayError):
                    await actor.end.remote()
        self._idle = idle


class ClusterLibrary(Library):
    """The documents of shards that may be on other machines: their actors read them."""

    def __init__(self, cluster: Cluster, path: Path, settings: Settings) -> None:
        """Read by the actors of a running cluster."""
        super().__init__(path, parser_of(settings), settings)
        self._cluster = cluster

    async def each(self, read_of: Callable[[int], Read[T] | None]) -> Answers[T]:
        """Return what shards answer to the reads that are theirs, as :meth:`Library.each`."""
        reads = {shard: read_of(shard) for shard in self._cluster.states}
        asked = {shard: (read,) for shard, read in reads.items() if read is not None}
        found, down = await self._cluster.each("read", asked)
        if len(down) == len(reads):
            raise none_answers(down)
        return found, down


async def _outcome(run: Awaitable[CrawlReport | str]) -> CrawlReport | str:
    try:
        return await run
    except RayTaskError:
        raise
    except RayError:
        return _GONE
