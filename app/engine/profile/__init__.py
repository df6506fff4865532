"""Profiles of programs: what ran on a board and in which ranges, the joules of each, what to do next, and exports."""
