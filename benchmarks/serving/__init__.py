"""A load test of `chainrule serve`: `client` asks, `process` runs a server, `__main__` measures and writes tables."""
