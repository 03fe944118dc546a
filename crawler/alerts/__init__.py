"""Telling others: signed webhooks, other services, and when a digest is due."""
