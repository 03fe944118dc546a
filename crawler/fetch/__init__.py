"""Requests and bounded responses over HTTP."""
