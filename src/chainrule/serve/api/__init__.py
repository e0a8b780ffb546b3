"""What is asked and answered, in OpenAI's shapes: `requests` and `responses` describe them, `errors` refuses.

`sampling` reads options, `completions`, `chat`, `embeddings` and `tokens` answer, `choices` turns updates of jobs into text.
"""
