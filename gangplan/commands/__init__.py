"""One module per command: it asks the pipeline and prints. No logic of its own."""
