"""Order and politeness: the frontier, host queues, and the clock they share."""
