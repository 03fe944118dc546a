"""The status of a daemon on one screen."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.crawler.run.standing import AUDITED_S, Spent, Standing
from freshet.crawler.terminal import (
    amount,
    clock_time,
    counted,
    joined,
    moment,
    percent,
    show_facts,
    show_list,
    span,
)
from freshet.scheduler.agenda.audit import MeasuredMean
from freshet.storage.entries import Discovered, Outlook

_DAY_S = 86_400.0
_CLASSES = ("daily or more", "weekly", "monthly", "yearly", "less often")
_BAR = 40
_LANES_SHOWN = 4


def print_standing(it: Standing, now: float) -> None:
    """Print budget, freshness, change rates, hosts at their cap and what is next."""
    outlook = it.outlook
    state = f"running (process {it.process})" if it.process else "not running"
    show_facts(
        f"Daemon: {state}, as of {moment(outlook.at, now)}",
        {
            "budget": f"{amount(outlook.budget)} requests a day by {outlook.policy}, "
            f"one every {_pause(outlook.budget)}",
            "spent today": _spent(it.today, "since midnight UTC"),
            "spent in 24 h": _spent(it.day, None),
            "forgone": _forgone(outlook),
            "discovery": _discovery(outlook.discovered),
            "refresh": _refresh(outlook.discovered),
            "pages": _pages(outlook),
            "new pages": _new_pages(outlook.discovered),
            "fresh": _fresh(it),
            "harmonic cost": _harmonic(it),
            "price": _price(outlook),
            "clocks": _clocks(outlook),
            "next": _next(it, now),
        },
    )
    _print_rates(outlook)
    show_list(
        "Hosts at their cap (visits a day)",
        ("host", "at most", "asked for", "refused", "pages"),
        [
            (lane.lane, amount(lane.most), amount(lane.wanted), amount(lane.refused), lane.pages)
            for lane in outlook.capped
        ],
        _LANES_SHOWN,
    )


def _pause(budget: float) -> str:
    seconds = _DAY_S / budget
    return f"{seconds:.2g} s" if seconds < 10 else span(seconds)


def _spent(found: Spent, since: str | None) -> str:
    flowed = f"{found.requests:,} of {amount(found.flowed)} given"
    share = None if found.share is None else f"({percent(found.share)})"
    return " ".join(word for word in (flowed, since, share) if word)


def _forgone(outlook: Outlook) -> str | None:
    """Describe the unspent budget, if it is worth telling."""
    if outlook.forgone < 1:
        return None
    since = span(outlook.at - outlook.began_at)
    return f"{amount(outlook.forgone)} in {since}: no host could take them"


def _pages(outlook: Outlook) -> str | None:
    if not outlook.watched:
        return None
    return (
        f"{outlook.watched:,}: {outlook.captured:,} captured, {outlook.waiting:,} new waiting, "
        f"{outlook.gone:,} gone"
    )


def _discovery(it: Discovered) -> str | None:
    """Return the share of the visits that went to finding pages."""
    if it.share is None:
        return None
    return (
        f"{percent(it.share)} of visits: {it.first_looks:,} first ones, "
        f"{it.revealing_looks:,} to hub pages"
    )


def _refresh(it: Discovered) -> str | None:
    if it.share is None:
        return None
    return f"{percent(1 - it.share)} of visits: {it.refreshing_looks:,}"


def _new_pages(it: Discovered) -> str | None:
    if not it.new_per_day:
        return None
    return f"{amount(it.new_per_day)} a day expected, {amount(it.unknown_pages)} unknown by now"


def _fresh(it: Standing) -> str | None:
    stale, measured = it.outlook.stale, it.measured
    expected = None if stale is None else f"{percent(1 - stale)} expected"
    if measured is None:
        return expected
    binary = measured.binary
    interval = f"{100 * (1 - binary.upper):.1f} to {percent(1 - binary.lower)}"
    by = f"{counted(measured.draws, 'audit')}, {span(AUDITED_S)}"
    return joined((expected, f"{percent(1 - binary.mean)} measured ({interval}, {by})"))


def _harmonic(it: Standing) -> str | None:
    harmonic = it.outlook.harmonic
    expected = None if harmonic is None else f"{amount(harmonic)} expected"
    measured = None if it.measured is None else _interval(it.measured.harmonic)
    return joined((expected, measured))


def _interval(found: MeasuredMean) -> str:
    return f"{amount(found.mean)} measured ({amount(found.lower)} to {amount(found.upper)})"


def _price(outlook: Outlook) -> str | None:
    if outlook.price is None:
        return None
    return f"{amount(outlook.price)}: pages worth less than this are not visited now"


def _clocks(outlook: Outlook) -> str | None:
    if not outlook.clocked:
        return None
    return f"{percent(outlook.clocked)} of pages are scheduled by their site's rhythm"


def _next(it: Standing, now: float) -> str | None:
    """Describe the next visits, if they are still to come."""
    outlook = it.outlook
    if it.process is None or outlook.next_at <= now or it.next_url is None:
        return None
    return f"{it.next_url} at {clock_time(outlook.next_at)}"


def _print_rates(outlook: Outlook) -> None:
    most = max(outlook.changing)
    if most:
        show_list(
            "Pages change",
            ("", "pages", ""),
            [
                (name, count, _bar(count, most))
                for name, count in zip(_CLASSES, outlook.changing, strict=True)
            ],
        )


def _bar(count: int, most: int, signs: Sequence[str] = " ▏▎▍▌▋▊▉█") -> str:
    """Return a bar as long as the count, to an eighth of a sign; at least one eighth above 0."""
    eighths = max(round(count / most * _BAR * 8), int(count > 0))
    return "█" * (eighths // 8) + signs[eighths % 8].strip()
