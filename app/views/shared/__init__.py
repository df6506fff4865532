"""What every panel uses: theme, widgets, settings, boards, the current result, and work off Qt's thread."""
