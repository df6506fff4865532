"""Boards of another machine, through the user's own ssh: see `gpu.RemoteGpu`; `engine/serving` is the other end."""
