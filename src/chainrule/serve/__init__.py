"""An OpenAI-compatible server: `batching/` works without HTTP, `api/` says what is asked and answered, `http/` guards it.

`models` holds what is served, `limits` what is allowed, `constraints/` keeps a text to JSON, `page/` is the page at /.
"""
