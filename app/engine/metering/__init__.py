"""Power and energy of a time window, from any source: the only place that attributes joules."""
