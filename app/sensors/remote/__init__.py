"""Boards of another machine through the user's own ssh: `gpu.RemoteGpu`; the other end is `wattridge serve-board`."""
