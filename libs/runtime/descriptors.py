"""How many files a process may have open at once, and so how many connections."""

import resource
from contextlib import suppress


def allow_all_descriptors() -> None:
    """As many as the machine lets it have. By itself it has what a shell gives, often 1,024; each stream takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS says that there is no limit, and then refuses to be taken at its word
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
