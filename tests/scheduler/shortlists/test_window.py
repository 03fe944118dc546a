from freshet.scheduler.shortlists.window import Window


def test_the_first_windows_learn_the_pace_of_crawls() -> None:
    window = Window()
    assert window.next(100, 0.0, 0) == 0
    assert window.next(100, 1.0, 50) == 1.0  # half of 100 places at 50 crawls a day


def test_a_list_that_lasts_gets_a_longer_window_and_one_that_runs_short_a_shorter() -> None:
    lasting, short, failing = Window(), Window(), Window()
    for window in (lasting, short, failing):
        window.next(100, 0.0, 0)
    lasting.passed()
    short.ran_short()
    failing.failed()
    days = [window.next(100, 1.0, 100) for window in (failing, short, lasting)]
    assert days == sorted(days)
    assert days[0] < days[2]


def test_where_nothing_is_crawled_the_window_grows() -> None:
    window = Window()
    window.next(10, 0.0, 0)
    first = window.next(10, 1.0, 0)
    assert window.next(10, 1.0 + first, 0) == 2 * first
