"""Import jobs of other systems as specs, with suggestions for other files and an account of every field."""
