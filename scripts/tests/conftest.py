"""Which of these tests are long: all but those of the server, and of a command a reproduction.

``scripts/test`` leaves long tests out, ``scripts/test --all`` does not. A long test elsewhere is
marked where it stands.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
EACH_TIME = {
    "test_discovery.py",
    "test_lambdacrawl.py",
    "test_search_quality.py",
    "test_search_weeks.py",
    "test_demo.py",
    "test_pythons.py",
    "test_detection_web.py",
    "test_synthetic_server.py",
    "test_synthetic_truth.py",
    "test_whittle.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name not in EACH_TIME:
            item.add_marker(pytest.mark.long)
