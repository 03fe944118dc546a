"""The network: one exchange with a server, bounded in time, size and address."""
