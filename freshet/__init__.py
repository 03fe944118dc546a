"""Freshet, a web crawler that learns when each page changes: its public Python API.

These names, and the modules that define them, are stable:

- :class:`Store`, to read from a crawl store, with :class:`StoredDocument`, :class:`Chunk`,
  :class:`Change`, :class:`Observation`, :class:`SearchResult` and :class:`VersionDifference`;
- :func:`crawl` and :class:`Daemon`, to crawl in another program's event loop;
- :class:`StoreError`, :class:`UnknownPage`, :class:`CursorGone`, :class:`CrawlError` and
  :class:`ConfigError`, their errors;
- :func:`lambda_crawl`, ``scheduler.policies.lambda_crawl.solve``: the optimal crawl rates of a
  budget;
- :func:`harmonic_cost` and :func:`binary_cost`, ``scheduler.costs``: the staleness of a crawl plan;
- :func:`estimate_change_rate`, ``scheduler.estimate.poisson.estimate``: a change rate from visits;
- :func:`whittle_index`, ``scheduler.policies.whittle.index``: the value of a visit to a source of
  items that lose their value;
- :func:`robots_allowed`, ``crawler.robots.allowed``: RFC 9309;
- :func:`canonical_url` and :func:`resolve_url`, ``crawler.urls.canonical`` and ``resolve``;
- ``scheduler.policy``: the Protocols of a policy plug-in (entry points ``freshet.policies``), and
  ``scheduler.conformance``, its contract tests.

All other modules may change with any version. A name is imported on first use, so that ``import
freshet`` is fast; ``__init__.pyi`` lists the names for type checkers.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Change": ("crawler.read.changefeed", "Change"),
    "Chunk": ("crawler.read.chunks", "Chunk"),
    "ConfigError": ("config", "ConfigError"),
    "CrawlError": ("crawler.errors", "CrawlError"),
    "CursorGone": ("storage.errors", "CursorGone"),
    "Daemon": ("crawler.run.embedded", "Daemon"),
    "Observation": ("storage.records", "Observation"),
    "SearchResult": ("crawler.read.lists", "SearchResult"),
    "Store": ("crawler.read.store", "Store"),
    "StoreError": ("storage.errors", "StoreError"),
    "StoredDocument": ("crawler.read.documents", "StoredDocument"),
    "UnknownPage": ("crawler.errors", "UnknownPage"),
    "VersionDifference": ("crawler.read.documents", "VersionDifference"),
    "binary_cost": ("scheduler.costs", "binary_cost"),
    "canonical_url": ("crawler.urls", "canonical"),
    "crawl": ("crawler.run.embedded", "crawl"),
    "estimate_change_rate": ("scheduler.estimate.poisson", "estimate"),
    "harmonic_cost": ("scheduler.costs", "harmonic_cost"),
    "lambda_crawl": ("scheduler.policies.lambda_crawl", "solve"),
    "resolve_url": ("crawler.urls", "resolve"),
    "robots_allowed": ("crawler.robots", "allowed"),
    "whittle_index": ("scheduler.policies.whittle", "index"),
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - they are names


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), attribute)
    return value
