"""What a question is and asks for: language, terms, filters, the kind of answer wanted."""
