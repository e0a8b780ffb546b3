"""What is asked and answered, in OpenAI's shapes: `requests` and `responses` describe them, `errors` refuses.

`completions`, `chat`, `embeddings` and `tokens` answer, `sampling` reads options, `generation` runs jobs, `choices`
turns their updates into text.
"""
