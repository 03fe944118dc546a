"""Simulations and replays that judge policies."""
