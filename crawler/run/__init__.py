"""A crawl and a daemon put together from the engine, the scheduler and the store."""
