"""What a GPU is and what it reports. Nothing here sets anything."""
