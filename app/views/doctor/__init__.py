"""What is missing or wrong on this machine, in a window; offered at the first start where something is."""
