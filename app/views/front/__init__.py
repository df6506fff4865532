"""The result of a session to choose from: front, slices, table, convergence."""
