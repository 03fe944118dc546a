from freshet.config import ConfigError
from freshet.crawler.errors import CrawlError, UnknownPage
from freshet.crawler.read.changefeed import Change
from freshet.crawler.read.chunks import Chunk
from freshet.crawler.read.documents import StoredDocument, VersionDifference
from freshet.crawler.read.lists import SearchResult
from freshet.crawler.read.store import Store
from freshet.crawler.robots import allowed as robots_allowed
from freshet.crawler.run.embedded import Daemon, crawl
from freshet.crawler.urls import canonical as canonical_url
from freshet.crawler.urls import resolve as resolve_url
from freshet.scheduler.costs import binary_cost, harmonic_cost
from freshet.scheduler.estimate.poisson import estimate as estimate_change_rate
from freshet.scheduler.policies.lambda_crawl import solve as lambda_crawl
from freshet.scheduler.policies.whittle import index as whittle_index
from freshet.storage.errors import CursorGone, StoreError
from freshet.storage.records import Observation

__version__: str

__all__ = [
    "Change",
    "Chunk",
    "ConfigError",
    "CrawlError",
    "CursorGone",
    "Daemon",
    "Observation",
    "SearchResult",
    "Store",
    "StoreError",
    "StoredDocument",
    "UnknownPage",
    "VersionDifference",
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
