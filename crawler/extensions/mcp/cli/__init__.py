"""The verb of the server for assistants."""
