"""How much of what is published imports: `python -m tests.wild FOLDER`, repositories of others."""
