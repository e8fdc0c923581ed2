"""What an earlier command found out, kept so that the next one need not: never a source of truth.

`look` says what a folder holds, `store` keeps records, `answers` gives a whole answer again. This package is
imported before anything else of a command, so it imports the standard library alone.
"""
