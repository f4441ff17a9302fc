"""What can go wrong with the view, drawn as a tree.

ViewError
├── ViewLost          fold it again, then ask again; callers answer 503 meanwhile
├── ViewUnavailable   the store did not answer; ask again, every question may be asked twice
└── ViewMisused       a programming error: the store refused the question itself
"""


class ViewError(Exception):
    """The view gave no answer."""


class ViewLost(ViewError):
    """The view is missing, not folded yet, or of another log. It is folded again within seconds: retry then."""


class ViewUnavailable(ViewError):
    """The view's store does not answer. Nothing is known of the outcome; the same question may be asked again."""


class ViewMisused(ViewError):
    """The view's store refused the question itself. Do not retry: the caller is wrong."""
