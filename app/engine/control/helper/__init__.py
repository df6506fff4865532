"""The helper with rights: the only code that changes a GPU, and the one that always puts it back.

A program of its own: the standard library and pynvml, nothing else of this project. It is started as
`python -I -S -B FOLDER GPU-UUID` with the rights of root, serves that one board over its standard input and output, and
puts back what was there before when its input closes, when no request comes for five seconds, or when it is told to
end. `python -I -S -B FOLDER --restore` puts back every board that a crash or a power cut left over.
"""
