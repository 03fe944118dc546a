"""The sender: takes messages from the store to their receivers, beside the crawl.

*Invariant.* Each receiver has a separate task, connection and pause. Consequence: one that hangs or
is down delays neither others nor fetching. A receiver gets one message at a time, in the order of
their composition; the next is sent when the one before is settled.

The outbox is read on the writer's connection. A reader in the middle of a long query sees an older
state of the store, and would send sent messages again.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import Random
from typing import Any, Final

from tenacity import AsyncRetrying, retry_if_exception_type

from freshet.config.settings import Settings
from freshet.crawler.extensions.alerts import tables as alerts
from freshet.crawler.extensions.alerts.messages import MessageComposer
from freshet.crawler.extensions.alerts.receivers import Delivery, Receiver
from freshet.crawler.extensions.alerts.rules import Channel, receiver
from freshet.crawler.extensions.alerts.settings import Alerts
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.frontier.clock import Clock
from freshet.crawler.frontier.politeness import back_off_s
from freshet.crawler.run.importance import Importances
from freshet.crawler.run.wiring import RunContext
from freshet.storage.database import Database
from freshet.storage.errors import StoreError, StoreUnavailable

log = logging.getLogger(__name__)

#: Seconds until retries that another process requested (`freshet alerts --retry`) are noticed.
_LOOKS_EVERY_S: Final = 60.0
#: Seconds between attempts to reach a store that is away.
_STORE_WAIT_S: Final = 60.0
#: Seconds for sending at the end of a crawl; the rest is sent next time.
_FINISH_S: Final = 30.0
#: Attempts before a message is given up, however old it is.
_LEAST_TRIES: Final = 3


@dataclass(slots=True)
class _Queue:
    """A receiver and the rules that go to it."""

    receiver: Receiver
    channels: Sequence[Channel]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failing: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class Outbox:
    """Sender of the alerts of all rules.

    Make it inside the running event loop. Errors of the store only end the sending, which is
    logged: unsent messages stay in the store.
    """

    database: Database
    composing: MessageComposer
    receiver_of: Callable[[Channel], Receiver]
    limits: Alerts
    clock: Clock
    rng: Random
    _queues: dict[tuple[str, bytes | None], _Queue] = field(default_factory=dict, init=False)
    _left: list[_Queue] = field(default_factory=list, init=False)
    _stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_running: bool = field(default=False, init=False)
    _is_finishing: bool = field(default=False, init=False)

    def obey(self, limits: Alerts, channels: Sequence[Channel]) -> None:
        """Apply these rules from now on; close receivers without a rule.

        Raises:
            CrawlError: a receiver cannot be used; nothing has changed then.
        """
        by_target: defaultdict[tuple[str, bytes | None], list[Channel]] = defaultdict(list)
        for channel in channels:
            by_target[channel.url, channel.key].append(channel)
        queues = {
            target: self._queues.get(target) or _Queue(self.receiver_of(theirs[0]), [])
            for target, theirs in by_target.items()
        }
        self.limits = limits
        self._left += [queue for target, queue in self._queues.items() if target not in by_target]
        self._queues = queues
        for target, queue in self._queues.items():
            queue.channels = by_target[target]
        for queue in self._left:
            queue.channels = []
        if self._is_running:
            self.start()

    def start(self) -> None:
        """Begin to send."""
        self._is_running = True
        for queue in self._queues.values():
            if queue.task is None:
                name = f"alerts to {queue.channels[0].target}"
                queue.task = asyncio.create_task(self._serve(queue), name=name)
        self.committed()

    def committed(self, _batch: object = None) -> None:
        """Wake the sender after a commit, which may have brought alerts."""
        for queue in (*self._queues.values(), *self._left):
            queue.changed.set()

    async def send_due(self) -> None:
        """Send the due messages, to each receiver until it fails. Raises StoreError."""
        async with asyncio.TaskGroup() as tasks:
            for queue in self._queues.values():
                tasks.create_task(self._send(queue))

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Send all due messages, for half a minute or until a stop is requested."""
        self._is_finishing = True
        self.start()
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        if tasks:
            ended = asyncio.create_task(asyncio.wait(tasks))
            stopped = asyncio.create_task(told_to_stop.wait())
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait({ended, stopped}, timeout=_FINISH_S, return_when=first)
            stopped.cancel()
        await self.close()

    async def close(self) -> None:
        """Let deliveries under way end, within the time limit, and begin no other."""
        self._stop.set()
        self.committed()
        queues = [*self._queues.values(), *self._left]
        await asyncio.gather(*(queue.task for queue in queues if queue.task is not None))
        for queue in queues:
            await queue.receiver.close()

    async def _serve(self, queue: _Queue) -> None:
        while queue.channels and not self._stop.is_set():
            queue.changed.clear()
            try:
                until = await self._send(queue)
            except StoreUnavailable:
                # The writer reports the failure, and waits; so does the sender.
                await self._wait_for_store(queue)
                continue
            except StoreError as error:
                _log_end(error)
                return
            except Exception:  # the next messages are sent after any error
                log.exception("sending of alerts failed; it is tried again in a minute")
                await self._wait_for_store(queue)
                continue
            if self._is_finishing:
                return
            until = min(until, self.clock.now() + _LOOKS_EVERY_S)
            await self.clock.wait(queue.changed, until, idle=False)

    async def _send(self, queue: _Queue) -> float:
        """Send all that is due to a receiver; when the next message is."""
        while queue.channels and not self._stop.is_set():
            names = [channel.name for channel in queue.channels]
            message = await self.database.at_once(partial(alerts.head, rules=names))
            if message is None:
                due = [(await self.composing.due_at(c), n) for n, c in enumerate(queue.channels)]
                at, number = min(due)
                if at > self.clock.now():
                    return at
                await self.composing.compose(queue.channels[number])
            elif message.next_at > self.clock.now():
                return message.next_at
            else:
                await self._try(queue, message)
        return inf

    async def _try(self, queue: _Queue, message: Message) -> None:
        try:
            answer = await queue.receiver.deliver(message, self.clock.now())
        except Exception as error:
            log.exception("sending alert %s failed with an unexpected error", message.key)
            answer = Delivery("failed", repr(type(error)))
        await self._settle(queue, message, answer)
        self._tell(queue, message, answer)

    async def _settle(self, queue: _Queue, message: Message, answer: Delivery) -> None:
        """Record the result of a delivery, as soon as the store permits."""
        number, now = message.message_id, self.clock.now()
        is_old = now - message.since > self.limits.give_up_s
        is_tried = message.tries + 1 >= _LEAST_TRIES
        if answer.outcome == "taken":
            await self._written(queue, alerts.sent, number, now)
        elif answer.outcome == "refused" or (is_old and is_tried):
            log.error(
                "alerts: %s: gave up a message (%s); `freshet alerts --retry` sends it again",
                message.rule, answer.said,
            )  # fmt: skip
            await self._written(queue, alerts.failed, number, now, answer.said)
        else:
            pause = back_off_s(self.limits, message.tries + 1, self.rng)
            asked = min(answer.retry_after_s or 0.0, self.limits.back_off_max_s)
            await self._written(queue, alerts.tried, number, now + max(pause, asked), answer.said)

    async def _written(self, queue: _Queue, change: Callable[..., None], *arguments: Any) -> None:
        """Commit a change, next of all and however long the store is away.

        If this fails, a delivered message is sent again; receivers recognise it by its key.

        Raises:
            StoreUnavailable: it is unavailable, and a stop was requested.
        """
        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            stop=lambda _: self._stop.is_set(),
            sleep=lambda _: self._wait_for_store(queue),
            reraise=True,
        )
        await tries(self.database.at_once, lambda connection: change(connection, *arguments))

    async def _wait_for_store(self, queue: _Queue) -> None:
        """Wait until something was committed, which shows that it is back, or for a while."""
        queue.changed.clear()
        if not self._stop.is_set():
            await self.clock.wait(queue.changed, self.clock.now() + _STORE_WAIT_S, idle=False)

    def _tell(self, queue: _Queue, message: Message, answer: Delivery) -> None:
        """Log once when a receiver begins to fail, and once when it is back."""
        is_failing = answer.outcome == "failed"
        targets = (each.target for each in queue.channels if each.name == message.rule)
        target = next(targets, "the receiver")
        if is_failing and not queue.failing:
            log.warning(
                "alerts: %s: delivery to %s failed (%s); messages are kept and retried",
                message.rule, target, answer.said,
            )  # fmt: skip
        elif queue.failing and answer.outcome == "taken":
            log.warning("alerts: %s: delivery to %s works again", message.rule, target)
        if answer.outcome != "refused":
            queue.failing = is_failing


def _log_end(error: StoreError) -> None:
    log.error("sending of alerts stopped; unsent messages stay in the store: %s", error)


def outbox_of(
    context: RunContext, settings: Settings, resolver: CachingResolver, importances: Importances
) -> Outbox:
    """Return the outbox of a run, which has no rules yet."""
    return Outbox(
        database=context.database,
        composing=MessageComposer(
            context.database, context.parser, importances, context.clock, settings
        ),
        receiver_of=partial(receiver, settings=settings, resolver=resolver, clock=context.clock),
        limits=settings.group(Alerts),
        clock=context.clock,
        rng=context.rng,
    )
