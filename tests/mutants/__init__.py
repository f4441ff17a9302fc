"""Mutation testing: small mistakes, each alone, and whether a test or a simulated seed notices.

    python -m tests.mutants                           all, and the page docs/proof/mutants.md
    python -m tests.mutants --only turns,settling     some, and the page with what is kept of the others
    python -m tests.mutants --rest                    those that are not tried yet, and those that survived

A mistake that nobody notices is a rule without a test, or a line that could as well be otherwise. For the latter
`survivors.toml` says why, by hand.
"""
