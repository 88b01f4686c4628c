"""Small convex problems in positive semidefinite matrices."""
