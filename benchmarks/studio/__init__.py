"""The Studio under load: `live` follows a run for an hour, `pages` opens every view; `process` starts server and
browser, `feed` writes the log that is followed."""
