"""Functions of the host in C, C++ and Fortran: what compiles them, and the backend that calls them in its process."""
