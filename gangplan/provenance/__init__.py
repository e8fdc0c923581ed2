"""The origin of a line: where a line of any file comes from, or what it became."""
