"""The search space: its table and what each restriction removes."""
