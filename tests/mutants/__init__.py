"""Mutation testing: small mistakes, each alone, and whether a test or a simulated seed notices.

    python -m tests.mutants                           all, and the page docs/proof/mutants.md
    python -m tests.mutants --only turns,settling     some, without the page

A mistake that nobody notices is a rule without a test, or a line that could as well be otherwise. For the latter
`survivors.toml` says why, by hand.
"""
