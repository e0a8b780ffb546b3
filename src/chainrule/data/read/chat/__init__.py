"""Data for models that answer: `conversations`, in the `layouts` in which such sets are published.

`mixed` takes several sources in given proportions; `templates` make questions of labeled texts and translations.
"""
