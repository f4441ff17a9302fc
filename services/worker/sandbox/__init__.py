"""Runs a command that is not trusted, and contains it. What holds at which level: docs/security.md.

    attempt's process ── keeper ── command          running ─► keeper ─► launch ─► (bubblewrap ─►) the command
       (Sandbox.run)     (watches, ends)                          └─ watch, tree

The keeper and what it launches import nothing beside the standard library and this package: they start in milliseconds.
"""
