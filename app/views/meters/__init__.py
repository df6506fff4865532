"""The wizard of power meters, and which are assigned to which board."""
