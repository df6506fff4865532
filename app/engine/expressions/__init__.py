"""One small language for restrictions, ranges and metrics: parsed, checked, evaluated over values and arrays."""
