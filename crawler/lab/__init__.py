"""Plans, replays and their reports: what the verbs of the laboratory compute and write."""
