"""Plans, replays, discovery and their reports: the computations behind these verbs."""
