"""What is run: kernels, programs and services."""
