"""How a board's power sensor refreshes, averages and lags: measured once per board and driver, and kept."""
