"""Hardware counters of single launches: Nsight Compute's command line on a real board, formulas on a simulated one."""
