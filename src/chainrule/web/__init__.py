"""The Studio: one local page that shows runs, tokens and every gradient. It draws; all numbers come from other rooms.

`app` puts the routes together, `jobs` runs what takes long in threads; `calculus`, `tokens`, `runs`, `microscope`,
`playground`, `lab` and `lessons` answer for their views as plain dictionaries; `page/` is what the browser loads.
"""
