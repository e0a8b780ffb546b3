"""Tasks of alignment: which of two answers is better, learned by a policy (`dpo`) or by a reward model (`reward`)."""
