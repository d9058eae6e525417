"""Fisher scores of models, their blocks and the metrics between them."""
