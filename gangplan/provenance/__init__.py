"""Why a line is there: a line of any file in, where it comes from or what became of it out."""
