"""What whoever runs a daemon sees of it: logs, metrics, its health, and the service manager's."""
