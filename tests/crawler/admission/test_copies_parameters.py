"""Pairs of pages that differ in one part of their URLs."""

import pytest

from freshet.crawler.admission.copies import ParameterPairs


@pytest.mark.parametrize("value", ["1", "2", "9"])
async def test_one_pair_that_differs_ends_what_was_found(value: str) -> None:
    pairs, found = ParameterPairs(4), dict[str, bool]()

    async def learn(page_id: int, url: str, text: bytes) -> None:
        learnt = await pairs.learn(1, page_id, f"https://h.example{url}", (text,), is_short=False)
        found.update({each.name: each.makes_copies for each in learnt})

    for n in range(6):
        for k, query in enumerate(("", "?c=1", "?c=2", "?c=3")):
            await learn(4 * n + k, f"/{n}{query}", b"%d" % n)
    assert found["?c"]
    await learn(99, "/7", b"7")
    await learn(100, f"/7?c={value}", b"another")
    assert not found["?c"]
