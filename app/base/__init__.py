"""Errors, text, files, paths, child processes and the installation: what everything else stands on."""
