"""The energy roofline of boards, measured, overlaid, and kernels placed on it."""
