"""Maximum entropy discrimination: margins met in expectation, with a certificate."""
