"""An OpenAI-compatible server: `batching/` works without HTTP, `api/` reads requests and writes answers.

`http/` guards and logs, `models` holds what is served, `limits` what is allowed, `constraints/` keeps a text to JSON,
`page/` is the page at /.
"""
