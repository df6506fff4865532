"""Kernels on real devices, whatever they are written in.

The window's or command's process compiles ahead (`compiler`) and reads the sensors; a process of its own (`worker`)
owns the device's context and launches (`backend`). They exchange bounded frames of JSON and bytes over its pipes
(`base/conversation.py`). A kernel that faults, hangs or poisons the context costs that process (`process`), never the
session: a spare one takes over. What differs between languages is a `Language`.
"""
