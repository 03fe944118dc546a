"""Several processes or machines: shards of a store, on Ray."""
