"""Alerts: from the settings to who is told, from the store to what they are told."""
