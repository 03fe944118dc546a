"""The policies that ship with Freshet: one algorithm a file, pure."""
