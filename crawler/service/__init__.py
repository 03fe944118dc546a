"""Monitoring of a running crawl: health, metrics, logs."""
