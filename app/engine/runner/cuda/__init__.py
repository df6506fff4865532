"""CUDA: what compiles it, and the backend of the runner process that launches it."""
