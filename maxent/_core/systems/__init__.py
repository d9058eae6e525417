"""Linear dynamical systems: filters, smoothers and their product kernel."""
