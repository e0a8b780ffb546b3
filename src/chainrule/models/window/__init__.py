"""Language models that see a fixed number of tokens: `neural_ngram` and `mlp_lm`, on what `model` says of both."""
