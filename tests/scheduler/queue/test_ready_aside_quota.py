"""Requests for sitemaps and feeds that have told nothing yet, and for URLs that cannot exist."""

import numpy as np

from freshet.scheduler.queue.ready import AsideQuota


def test_lists_that_tell_nothing_get_the_first_request_and_a_twentieth_of_all() -> None:
    quota, lists = AsideQuota(), 0
    quota.silent_lists = np.array([3, 7])
    for _ in range(1_000):
        is_list = not quota.is_spent(1)
        lists += is_list
        quota.took(1, 7 if is_list else 1)
    assert lists == 50
    assert not quota.is_spent(2)


def test_the_first_probe_of_a_host_is_free_although_a_list_was_asked() -> None:
    quota, probes = AsideQuota(), 0
    quota.silent_lists = np.array([7])
    quota.took(1, 7)
    assert quota.is_spent(1)
    for _ in range(1_000):
        probes += quota.take_probe(1)
        quota.took(1, 1)
    assert quota.take_probe(2)
    assert probes == 52
