"""The author that needs no model: it knows a few kinds of small packages, and chooses and varies them by the prompt.

Owns their templates and what of a prompt changes them. What it writes is the whole truth about what it can do: a prompt
that asks for something else gets the nearest kind, and a README that says so.
"""

from services.worker.build.offline.kinds import KINDS, AppKind, choose, write_package

__all__ = ["KINDS", "AppKind", "choose", "write_package"]
