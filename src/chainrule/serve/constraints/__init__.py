"""Texts that must be JSON: `grammar` says which bytes may follow, `schema` makes a grammar of a JSON schema, `tokens`
says which tokens fit it.
"""
