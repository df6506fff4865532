"""A search space to look at: its table and what each restriction removes."""
