"""Plans, replays and rehearsals, offline."""
