"""Reading documents, labeled and tagged texts, pairs, questions and names; errors name the file and the line."""
