"""Results of earlier commands, kept so that the next one need not compute them again: never a source of
truth.

`look` says what a folder holds, `store` keeps records, `answers` repeats a whole answer. This package is
imported before anything else of a command, so it imports only the standard library.
"""
