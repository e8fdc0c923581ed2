"""How much of what others publish can be imported: `python -m tests.wild FOLDER`, with their repositories."""
