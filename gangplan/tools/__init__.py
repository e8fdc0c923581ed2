"""Find, install and run external programs. All functions return typed results or raise `ToolError`."""
