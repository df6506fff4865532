"""What all plots share: axes, ticks, markers, colours, menus."""
