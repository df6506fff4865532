"""What is done with boards: measuring, searching, modelling. No Qt."""
