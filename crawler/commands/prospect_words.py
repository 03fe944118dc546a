"""A page's prospects in words: why it was or was not fetched, and when it is next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from freshet.crawler.commands.budget import parsed
from freshet.crawler.commands.display import moment, span
from freshet.crawler.commands.figures import amount, percent
from freshet.crawler.commands.prospect import LastVisit, Prospect
from freshet.storage.words import Kind

_DAY_S: Final = 86_400.0
#: New pages from which on they are told of.
_WORTH_TELLING: Final = 0.05
_TIMES: Final = {1: "once", 2: "twice"}


def paragraph(it: Prospect, now: float, *, obstacle: str | None, is_running: bool) -> str:
    """All that there is to say; ``obstacle`` is what stands in the way of its host."""
    return " ".join(_sentences(it, now, obstacle, is_running=is_running))


def _sentences(
    it: Prospect, now: float, obstacle: str | None, *, is_running: bool
) -> Iterator[str]:
    if it.excluded_by is not None:
        yield f"Not asked for: the rule for {it.excluded_by} says never."
        return
    yield from _history(it, now)
    yield f"Its importance is {it.importance.value:.3g} ({it.importance.said()})."
    if it.captured or it.not_before is None:
        yield from _value(it)
        yield from _when(it, now)
    else:
        yield f"It is asked for again from {moment(it.not_before, now)} on."
    if it.capped is not None:
        yield (
            f"Its host is at its cap: {amount(it.capped.most)} looks a day at most, asked for "
            f"{amount(it.capped.wanted)}."
        )
    if obstacle:
        yield f"Now {obstacle}."
    if not is_running:
        yield "No daemon is running."


# -- what was found ----------------------------------------------------------------


def _history(it: Prospect, now: float) -> Iterator[str]:
    last = it.last
    if last is None:
        yield f"Found {_ago(it.age_days * _DAY_S)} and not fetched yet."
        return
    if it.captured and last.kind is not Kind.GONE:
        yield _rate(it)
    match last.kind:
        case Kind.NEW | Kind.CHANGED | Kind.UNCHANGED:
            yield _looked_at(it, last, now)
        case Kind.GONE:
            yield _gone(it, last, now)
        case Kind.FAILED:
            yield _failed(it, last, now)
        case _:
            yield _elsewhere(last, now)


def _rate(it: Prospect) -> str:
    rate = it.rate
    if not rate.compared:
        return f"How often it changes is not known yet; pages like it do {_often(rate.per_day)}."
    comparisons = f"{rate.compared:,} comparison{'s' * (rate.compared != 1)}"
    between = _between(rate.lower, rate.upper)
    return f"It changes about {_often(rate.per_day)} ({between}, from {comparisons})."


def _looked_at(it: Prospect, last: LastVisit, now: float) -> str:
    found = {Kind.NEW: "fetched for the first time", Kind.CHANGED: "found changed"}
    what = found.get(last.kind, "found unchanged")
    why = ""
    if last.drawn:
        why = ", drawn at random to measure the freshness"
    elif last.worth is not None:
        why = f", when a look was worth {amount(last.worth)}"
    stale = f"stale by now with {percent(it.stale)}{_by(it)}"
    return f"It was {what} {_ago(now - last.at)}{why}: {stale}."


def _by(it: Prospect) -> str:
    """By what that is foretold."""
    if it.claimed:
        return ", by what is claimed of it, which has proved right"
    clock = ", by the clock of its site" if it.clocked else ""
    return clock if it.claimed is None else f"{clock}; what is claimed of it is not believed"


def _gone(it: Prospect, last: LastVisit, now: float) -> str:
    part = "tenth" if it.captured else "hundredth"
    return (
        f"It was gone {_times(last.in_a_row)} ({_why(last)}), last {_ago(now - last.at)}: each "
        f"time in a row a look is worth a {part} of before."
    )


def _failed(it: Prospect, last: LastVisit, now: float) -> str:
    kept = "the copy from before is kept" if it.captured else "there is no copy yet"
    return f"It failed {_times(last.in_a_row)} ({_why(last)}), last {_ago(now - last.at)}; {kept}."


def _elsewhere(last: LastVisit, now: float) -> str:
    what = {
        Kind.REDIRECTED: f"It led to {last.detail}",
        Kind.REFUSED: f"Its host's robots.txt forbade it ({last.detail})",
    }.get(last.kind, f"It is nothing that is crawled ({_why(last)})")
    return f"{what} when it was asked for {_ago(now - last.at)}."


def _why(last: LastVisit) -> str:
    return ": ".join(word for word in (last.reason, last.detail) if word) or "no reason known"


# -- what it is worth --------------------------------------------------------------


def _value(it: Prospect) -> Iterator[str]:
    if it.arrival_rate is not None:
        yield (
            f"It is an ephemeral source: about {amount(it.arrival_rate)} new items appear a day, "
            f"which lose half of their worth in {span((it.half_life_hours or 0.0) * 3_600)}."
        )
    if it.urgent:
        yield "It is new at an ephemeral source: it comes before all that can wait."
    elif not it.captured and it.worth is None:
        yield "Without a copy it goes by its importance and the days that it waits."
    elif it.planned is not None:
        yield _plan(it)
    elif it.worth is not None and _is_overdue(it):
        yield f"A rule wants it looked at every {_days(it.most_days)}: it goes before all others."
    elif it.worth is not None:
        if not it.captured:
            yield (
                "Without a copy a look is worth the importance times the days that it waits, and "
                "a turn of all pages, as far as it is likely to be there."
            )
        if it.reveals >= _WORTH_TELLING:
            yield f"A look is expected to reveal {amount(it.reveals)} new pages."
        where = "looks" if it.capped is None else "looks at the pages of its host"
        price = f"; under {_budget(it)} {where} are taken at about {amount(it.price or 0.0)}"
        yield f"A look is worth {amount(it.worth)} now{'' if it.price is None else price}."


def _plan(it: Prospect) -> str:
    plan = f"The plan of {it.policy} for {_budget(it)} gives it"
    if not it.planned:
        return f"{plan} no looks: others gain more."
    return f"{plan} a look {_often(it.planned)}."


def _is_overdue(it: Prospect) -> bool:
    return it.captured and it.most_days is not None and it.age_days >= it.most_days


# -- when it is next ---------------------------------------------------------------


def _when(it: Prospect, now: float) -> Iterator[str]:
    if it.captured and it.least_days:
        yield f"A rule keeps looks {_days(it.least_days)} apart."
    if it.captured and it.most_days is not None and not _is_overdue(it):
        yield f"A rule wants it looked at every {_days(it.most_days)}."
    if it.due_in_days is None:
        if it.not_before is not None:
            yield f"It is not asked for before {moment(it.not_before, now)}."
        elif it.price is not None:
            yield "At this price its turn does not come for years, but for draws at random."
        return
    at = now + it.due_in_days * _DAY_S
    if at <= now:
        yield (
            "So its turn is now." if it.capped is None else "So its turn is when its host is free."
        )
    else:
        yield f"So the next look is due about {moment(at, now)}."


# -- words -------------------------------------------------------------------------


def _budget(it: Prospect) -> str:
    return f"{amount(parsed(it.budget))} requests a day"


def _ago(seconds: float) -> str:
    return f"{span(max(0.0, seconds))} ago"


def _days(days: float | None) -> str:
    return span((days or 0.0) * _DAY_S)


def _times(count: int) -> str:
    return _TIMES.get(count, f"{count} times in a row")


def _between(lower: float, upper: float) -> str:
    """Two rates in words, the quicker one first unless both are counts."""
    if lower >= 1:
        return f"{lower:.2g} to {_often(upper)}"
    return f"{_often(upper)} to {_often(lower)}"


def _often(per_day: float) -> str:
    """A rate in words."""
    return f"{per_day:.2g} times a day" if per_day >= 1 else f"every {span(_DAY_S / per_day)}"
