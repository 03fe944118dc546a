"""The Scrapy project that scripts/bench crawl measures Freshet against."""
