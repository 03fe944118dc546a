"""Requests for sitemaps and feeds that have told nothing yet, and for URLs that cannot exist."""

import numpy as np

from freshet.scheduler.agenda.queue import ListQuota


def test_lists_that_tell_nothing_get_the_first_request_and_a_twentieth_of_all() -> None:
    quota, lists = ListQuota(), 0
    quota.untold = np.array([3, 7])
    for _ in range(1_000):
        is_list = not quota.is_spent(1)
        lists += is_list
        quota.took(1, 7 if is_list else 1)
    assert lists == 50
    assert not quota.is_spent(2)
