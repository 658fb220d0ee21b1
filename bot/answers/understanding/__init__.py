"""Question analysis: language, terms, document filters and the type of answer wanted."""
