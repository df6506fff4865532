"""What kernels cost on a simulated board."""
