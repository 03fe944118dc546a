"""Politeness: who shares a delay, when the next exchange may start, what is tried again."""
