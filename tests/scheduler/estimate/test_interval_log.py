import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.estimate.poisson import AT_LEAST_ONE, IntervalLog

SOURCES = 4
ENTRY = st.tuples(
    st.integers(0, SOURCES - 1), st.integers(0, 40).map(float), st.sampled_from([0.25, 1.0, 3.0]),
    st.integers(AT_LEAST_ONE, 3),
)  # fmt: skip
BATCHES = st.lists(st.lists(ENTRY, max_size=6), max_size=8)


def append(log: IntervalLog, batch: list[tuple[int, float, float, int]]) -> None:
    source, at, span, changes = zip(*batch, strict=True) if batch else ((), (), (), ())
    log.append(np.array(source, np.intp), np.array(at), np.array(span), np.array(changes, np.int64))


@given(BATCHES, st.sampled_from([5.0, np.inf]), st.permutations(range(SOURCES)))
def test_a_log_holds_what_a_list_would(
    batches: list[list[tuple[int, float, float, int]]], window: float, rows: list[int]
) -> None:
    log = IntervalLog(SOURCES, window)
    for batch in batches:
        append(log, batch)
    entries = [entry for batch in batches for entry in batch]
    newest = max((at for _, at, _, _ in entries), default=0.0)
    expected = [
        (place, span, changes)
        for place, row in enumerate(rows)
        for source, at, span, changes in reversed(entries)
        if source == row and at > newest - window
    ]
    owner, spans, number = log.of(np.array(rows))
    assert list(zip(owner.tolist(), spans.tolist(), number.tolist(), strict=True)) == expected


def test_a_log_grows_by_what_counts_and_drops_the_rest() -> None:
    log = IntervalLog(10, window=30.0)
    source = np.arange(10)
    for day in range(1_000):
        log.append(source, np.full(10, float(day)), np.ones(10), np.full(10, day))
    owner, _, changes = log.of(np.array([3]))
    assert changes.tolist() == list(range(999, 969, -1))
    assert owner.tolist() == [0] * 30
    assert len(log) < 2_500
