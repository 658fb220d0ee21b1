"""What a round of the soak tests is checked by: an audit, a witness, and what is kept as evidence."""
