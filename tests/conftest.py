"""Which folders hold long tests: ``scripts/test`` leaves them out, ``scripts/test --all`` does not.

A long test elsewhere is marked where it stands.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: The reproductions whose one command is run each time.
EACH_TIME = {"test_discovery.py", "test_lambdacrawl.py", "test_whittle.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        is_extra = folder == "reproductions" and item.path.name not in EACH_TIME
        if folder == "benchmarks" or is_extra:
            item.add_marker(pytest.mark.long)
