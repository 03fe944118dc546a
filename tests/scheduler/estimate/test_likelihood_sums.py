import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.estimate import rate_posterior
from freshet.scheduler.estimate.bayes import CHUNK, LikelihoodSums
from freshet.scheduler.estimate.evidence import Evidence

SOURCES = 3
PIECE = st.tuples(
    st.integers(0, SOURCES - 1),
    st.integers(0, 20).map(float),
    st.sampled_from([0.25, 1.0, 3.0]),
    st.integers(0, 1),
    st.booleans(),
)


def evidence(pieces: list[tuple[int, float, float, int, bool]]) -> Evidence:
    source, at, span, changes, counted = zip(*pieces, strict=True) if pieces else ((),) * 5
    return Evidence.of(
        np.array(source, np.intp),
        at,
        span,
        changes,
        counted=np.array(counted, np.bool_),
    )


@given(st.lists(PIECE, min_size=1, max_size=12), st.sampled_from([2.0, np.inf]), st.data())
def test_neither_order_nor_batches_of_evidence_matter(
    pieces: list[tuple[int, float, float, int, bool]], half_life: float, data: st.DataObject
) -> None:
    at_once, in_parts = LikelihoodSums(SOURCES, half_life), LikelihoodSums(SOURCES, half_life)
    at_once.add(evidence(pieces))
    mixed = data.draw(st.permutations(pieces))
    cut = data.draw(st.integers(0, len(pieces)))
    in_parts.add(evidence(mixed[:cut]))
    for piece in mixed[cut:]:
        in_parts.add(evidence([piece]))
    rows = np.arange(SOURCES)
    np.testing.assert_allclose(in_parts.likelihood(rows), at_once.likelihood(rows), atol=1e-5)
    np.testing.assert_array_equal(in_parts.known(), at_once.known())


@given(st.lists(PIECE, min_size=1, max_size=12), st.sampled_from([2.0, np.inf]))
def test_a_likelihood_is_the_product_of_that_of_each_piece_faded_to_the_newest(
    pieces: list[tuple[int, float, float, int, bool]], half_life: float
) -> None:
    sums = LikelihoodSums(SOURCES, half_life)
    sums.add(evidence(pieces))
    rates = np.exp(rate_posterior.FINE)
    for source in range(SOURCES):
        own = [piece[1:] for piece in pieces if piece[0] == source]
        newest = max((at for at, *_ in own), default=0.0)
        total = np.zeros_like(rates)
        for at, span, changes, counted in own:
            differed = changes == 1 and not counted
            log = np.log(-np.expm1(-span * rates)) if differed else -span * rates
            log = log + changes * np.log(rates) if counted else log
            total += 0.5 ** ((newest - at) / half_life) * log
        expected = np.exp(total - total.max())
        np.testing.assert_allclose(sums.likelihood(np.array([source]))[0], expected, atol=2e-3)


def test_a_batch_may_be_larger_than_what_is_worked_out_together() -> None:
    rng = np.random.default_rng(1)
    m = 3 * CHUNK + 5
    source = rng.integers(0, 50, m)
    span = rng.exponential(1.0, m)
    sums = LikelihoodSums(50, np.inf)
    sums.add(Evidence(source, np.zeros(m), span, np.ones(m, np.int64), np.zeros(m, np.bool_)))
    expected = np.stack([rate_posterior.differed(span[source == i]).sum(axis=0) for i in range(50)])
    np.testing.assert_allclose(sums._differed, expected, rtol=1e-5)


def test_only_sources_with_evidence_are_known() -> None:
    sums = LikelihoodSums(5, np.inf)
    sums.add(Evidence.of([1, 2], [1.0, 1.0], [1.0, 1e4], [0, 1]))
    sums.add(Evidence.of([4], [1.0], [0.0], [1], counted=[True]))
    assert sums.known().tolist() == [1, 2, 4]
    assert len(sums) == 5


def test_single_precision_is_enough_for_a_long_history() -> None:
    n, span = 20_000, 0.5
    sums = LikelihoodSums(1, np.inf)
    piece = Evidence.of([0], [0.0], [span], [1])
    for _ in range(n):
        sums.add(piece)
    sums.add(Evidence.of([0], [0.0], [n * span], [0]))
    rates = np.exp(rate_posterior.FINE)
    direct = n * (np.log(-np.expm1(-span * rates)) - span * rates)
    # As many changed as unchanged: 1 − e^{−Δ/2} = 1/2.
    mean = rate_posterior.log_mean(sums.likelihood(np.array([0])))[0]
    assert mean == pytest.approx(np.log(2 * np.log(2)), abs=0.036)
    assert sums.likelihood(np.array([0]))[0].argmax() == direct.argmax()
