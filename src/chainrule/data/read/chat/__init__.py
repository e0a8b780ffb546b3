"""Data for models that answer: conversations, in the layouts in which such sets are published."""
