"""What the views of runs show: `overview` lists and compares them, `live` follows one that trains.

`plan` reads a form as the words of `chainrule train` and forecasts it, `processes` starts, stops and resumes trainings.
"""
