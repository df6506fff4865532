"""The page Understand: answers, analysis, model, roofline, comparison, idle power."""
