"""The addresses of the Studio, one file per view; each calls the room that knows, and answers as JSON.

`answers` runs what takes long as a job.
"""
