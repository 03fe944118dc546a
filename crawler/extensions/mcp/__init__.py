"""A server of the Model Context Protocol, by which assistants read a store."""
