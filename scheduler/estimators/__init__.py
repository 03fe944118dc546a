"""Estimators of change rates: one method a file, pure."""
