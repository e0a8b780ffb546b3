"""A load test of `chainrule serve`: `client` asks, `process` runs a server, `llama` one of llama.cpp's.

`start`, `speed`, `load` and `faults` measure; `faulty` is a server whose model fails on purpose; `part` holds what was
found and what must hold, and `__main__` writes it down. `clients/` are programs of others.
"""
