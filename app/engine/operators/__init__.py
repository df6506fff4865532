"""Operators of neural networks as workloads: a kind and a shape become an ordinary specification."""
