"""The configuration at the cursor and the chosen one: costs, evidence, apply, export."""
