"""What users hand over, as arrays: rows, frames, sequences, letters, categories."""
