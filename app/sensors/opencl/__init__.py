"""Devices of OpenCL: which there are, and which of them is a board whose sensors are read otherwise."""
