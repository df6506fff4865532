"""Setting clocks and limits of a board, and putting them back."""
