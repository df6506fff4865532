"""The helper with rights: the only code that changes a GPU, and the one that always puts it back.

A program of its own: the standard library (Python 3.9 or later), pynvml, and the binding of AMD SMI
(`sensors/amd/binding.py`), nothing else of this project. Installed as
`/usr/lib/wattridge/wattridge-control UUID`, from files that only root can change, it serves that one board over its
standard input and output, and puts back what was there before when its input closes, when no request comes for five
seconds, or when it gets a signal to end. `wattridge-control --restore` puts back every board that a crash or a power
cut left over. `python -I -S -B FOLDER GPU-UUID` starts the copy in FOLDER in the same way.
"""
