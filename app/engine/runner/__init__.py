"""Running workloads: rows of a search space in, measurements out."""
