"""Every board at a glance, and the processes on it."""
