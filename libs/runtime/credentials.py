"""What looks like a credential is not shown, whoever put it into a text."""

import re
from typing import Final

CREDENTIALS: Final = (
    re.compile(r"(?<=://)[^\s/@\"]+(?=@)"),  # user:password in a URL
    re.compile(r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*"),  # a JWT
)


def without_credentials(text: str) -> str:
    for pattern in CREDENTIALS:
        text = pattern.sub("***", text)
    return text
