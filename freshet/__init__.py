"""Freshet, the web crawler that knows when to come back: its public Python API.

These names, and the modules that they come from, are stable:

- :class:`Store`, a crawl store to read from, with :class:`Change` for a change of a page;
- :func:`crawl` and :class:`Daemon`, a crawl in another program's event loop;
- :class:`StoreError` with :class:`UnknownPage`, :class:`CursorGone`, :class:`CrawlError` and
  :class:`ConfigError`, their errors;
- :func:`lambda_crawl`, ``scheduler.policies.lambda_crawl.solve``: the optimal crawl rates of a
  budget;
- :func:`harmonic_cost` and :func:`binary_cost`, ``scheduler.costs``: the staleness of a crawl plan;
- :func:`estimate_change_rate`, ``scheduler.estimate.poisson.estimate``: a change rate from visits;
- :func:`whittle_index`, ``scheduler.policies.whittle.index``: the value of a visit to a source
  whose items fade;
- :func:`robots_allowed`, ``crawler.robots.allowed``: RFC 9309;
- :func:`canonical_url` and :func:`resolve_url`, ``crawler.urls.canonical`` and ``resolve``;
- ``scheduler.policy``: the Protocols of a policy plug-in (entry points ``freshet.policies``), and
  ``scheduler.conformance``, the laws that it keeps.

All other modules may change with any version. A name is imported at its first use, so that
``import freshet`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freshet.config.loading import ConfigError
    from freshet.crawler.changefeed import Change
    from freshet.crawler.documents import UnknownPage
    from freshet.crawler.robots import allowed as robots_allowed
    from freshet.crawler.run.embedded import Daemon, crawl
    from freshet.crawler.store import Store
    from freshet.crawler.tally import CrawlError
    from freshet.crawler.urls import canonical as canonical_url
    from freshet.crawler.urls import resolve as resolve_url
    from freshet.scheduler.costs import binary_cost, harmonic_cost
    from freshet.scheduler.estimate.poisson import estimate as estimate_change_rate
    from freshet.scheduler.policies.lambda_crawl import solve as lambda_crawl
    from freshet.scheduler.policies.whittle import index as whittle_index
    from freshet.storage.database import StoreError
    from freshet.storage.tables.changefeed import CursorGone

__version__ = "0.1.0"

__all__ = [
    "Change",
    "ConfigError",
    "CrawlError",
    "CursorGone",
    "Daemon",
    "Store",
    "StoreError",
    "UnknownPage",
    "__version__",
    "binary_cost",
    "canonical_url",
    "crawl",
    "estimate_change_rate",
    "harmonic_cost",
    "lambda_crawl",
    "resolve_url",
    "robots_allowed",
    "whittle_index",
]

_HOMES = {
    "Change": ("crawler.changefeed", "Change"),
    "ConfigError": ("config.loading", "ConfigError"),
    "CrawlError": ("crawler.tally", "CrawlError"),
    "CursorGone": ("storage.tables.changefeed", "CursorGone"),
    "Daemon": ("crawler.run.embedded", "Daemon"),
    "Store": ("crawler.store", "Store"),
    "StoreError": ("storage.database", "StoreError"),
    "UnknownPage": ("crawler.documents", "UnknownPage"),
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


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), attribute)
    return value
