"""What can go wrong in a notifier beside the log.

NotifierError
└── AddressRefused    a webhook is not called now; its name is looked up again at the next try
"""


class NotifierError(Exception):
    """The notifier cannot do this."""

    def __init__(self, **facts: object) -> None:
        text = " ".join((type(self).__doc__ or "").split())
        super().__init__(text.format(**facts))


class AddressRefused(NotifierError):
    """{host} leads to {address}, which nobody on the internet has. Where that is as it should be, an operator writes
    the host into webhooks.internal of the policy."""
