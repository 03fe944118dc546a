"""How a running crawl is watched: health, metrics, logs."""
