"""The command ``manifoldry``: from a file to a map, without writing code.

Every command reads files with `manifoldry.io`, calls the functions that Python users call, and
writes files or prints. Nothing is computed here.
"""
