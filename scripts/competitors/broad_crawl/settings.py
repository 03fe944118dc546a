"""Settings that Scrapy's documentation recommends for broad crawls ("Broad Crawls").

Concurrency per domain and the user agent come from the benchmark's command line, so that
all crawlers have the same.
"""

BOT_NAME = "broad_crawl"
SPIDER_MODULES = ["broad_crawl.spiders"]

SCHEDULER_PRIORITY_QUEUE = "scrapy.pqueues.DownloaderAwarePriorityQueue"
CONCURRENT_REQUESTS = 100
REACTOR_THREADPOOL_MAXSIZE = 20
LOG_LEVEL = "INFO"
COOKIES_ENABLED = False
RETRY_ENABLED = False
DOWNLOAD_TIMEOUT = 15
REDIRECT_ENABLED = False

# Breadth first, which the same page recommends to save memory; Freshet does so, too.
DEPTH_PRIORITY = 1
SCHEDULER_DISK_QUEUE = "scrapy.squeues.PickleFifoDiskQueue"
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"

# As `scrapy startproject` writes it, and as Freshet always does.
ROBOTSTXT_OBEY = True
DOWNLOAD_DELAY = 0
# Nobody looks, and it would open a port.
TELNETCONSOLE_ENABLED = False
