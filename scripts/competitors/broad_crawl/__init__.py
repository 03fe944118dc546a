"""The Scrapy project that scripts/bench_crawl measures Freshet against."""
