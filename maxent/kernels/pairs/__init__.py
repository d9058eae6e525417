"""Product kernels of pairs of models: routes by class, and the recursions they take."""
