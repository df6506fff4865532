"""OpenCL: what builds it, and the backend of the runner process that launches it, both by pyopencl."""
