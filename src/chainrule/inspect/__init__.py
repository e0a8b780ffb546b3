"""Looking inside models: plain arrays and dicts, nothing is drawn here."""
