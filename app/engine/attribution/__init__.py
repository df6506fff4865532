"""Attribution of a board's energy to what a program ran on it: joules of kernels, copies and gaps, with intervals."""
