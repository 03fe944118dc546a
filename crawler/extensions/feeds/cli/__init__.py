"""The verb of the feeds."""
