"""HTTP: `app` has the routes, `gate` checks and logs each request, `flow` brings updates of jobs to the event loop.

`events` streams them, `body` reads requests, `metrics` counts, `address` is where it listens, and `server` runs it all
and drains on SIGTERM.
"""
