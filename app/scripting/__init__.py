"""What a Python script calls: `tune_kernel` and `run_kernel` as Kernel Tuner has them, and `tune` for any callable.

The engine, the store and the window behind it are the same as for a specification; a script's functions are called in
its own process.
"""
