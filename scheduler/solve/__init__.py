"""One price divides a budget among sources."""
