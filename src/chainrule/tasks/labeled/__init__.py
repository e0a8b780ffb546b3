"""Tasks on texts with labels: a label for each text, or a tag for each word.

`classification` and `tagging` train an encoder, `bag_of_words` the baseline; `suited` holds the sizes that suit them.
"""
