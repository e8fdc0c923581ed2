"""Objects and workspace in, findings out. Checks never raise on bad input and never fix it."""
