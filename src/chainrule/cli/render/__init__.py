"""What a person sees: `help`, `progress`, `tables`, `findings`, numbers and lines as wide as the terminal.

`training`, `result`, `trials` and `seeds` tell of runs, `scaling` of fits and plans; `plots` draws figures, `html`
writes the page of a run.
"""
