"""Linear dynamical systems, and those that switch between regimes."""
