"""Alerts: rules, messages, and their delivery by signed webhooks and other services."""
