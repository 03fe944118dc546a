"""The verb of the connectors."""
