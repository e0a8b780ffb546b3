"""Documents, records, pairs and questions from files of many formats, with errors that name the line."""
