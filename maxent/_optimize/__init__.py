"""Concave duals over a polyhedron, solved to a certified gap."""
