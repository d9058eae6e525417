"""Readers of tables: delimited text and svmlight, every malformed line named."""
