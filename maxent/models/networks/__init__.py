"""Models of columns on a graph: Bayes nets, random fields, linear Gaussians."""
