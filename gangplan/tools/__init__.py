"""Other people's programs: finding, installing and running them. Typed results out, `ToolError` otherwise."""
