"""Settings: what they are called, which values they take, and where a value came from."""
