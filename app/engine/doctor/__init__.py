"""What is missing or wrong on this machine, and the remedy: one check for each thing that the program needs."""
