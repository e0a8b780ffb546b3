"""Reading a file of each kind: documents, labeled and tagged texts, pairs, preferences, prompts, questions and names.

`tabular` knows records, tables and their columns, `chat` conversations, `files` text and packed files. An error names
the file and the line.
"""
