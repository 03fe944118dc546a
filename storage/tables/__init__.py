"""Writing and reading one table, or a family of tables, a module."""
