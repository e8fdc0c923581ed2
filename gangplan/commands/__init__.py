"""One module per command: it calls the pipeline and prints. It has no logic of its own."""
