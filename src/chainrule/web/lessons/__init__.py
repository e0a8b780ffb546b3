"""The lessons of the Studio: a path from one number to models that follow preferences.

`texts/` has a file for each lesson, which a teacher can edit; `reading` reads them, `exercises` checks what a learner
answers, `figures` computes what the figures of the lessons show.
"""
