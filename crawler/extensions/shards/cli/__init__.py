"""The verb ``shards``, and what ``--shards`` does."""
