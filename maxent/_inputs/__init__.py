"""What users hand over, as arrays: sequences, letters, categories, bags."""
