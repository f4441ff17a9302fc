"""How this command was called, so that whatever it says of itself can be pasted where it was said."""

import os
import re
import shlex
import shutil
import sys
from typing import Final

NAME: Final = "headgate"
AGAIN_BY_UVX: Final = f"uvx --from headgate-server {NAME}"
KEPT_BY_UV: Final = re.compile(r"/(?:archive|environments)-v\d+/")  # for one run; on the path of that run alone
COMMAND: Final = re.compile(rf"(?<![\w/.-]){NAME}(?= [a-z-])")


def called() -> str:
    """`headgate` where the path finds this one by that name; by uvx, what uvx was told; else as it was written,
    `.venv/bin/headgate`."""
    word = sys.argv[0]
    if KEPT_BY_UV.search(word):
        return AGAIN_BY_UVX
    if os.path.basename(word) != NAME:  # noqa: PTH119 - a path would lose the `./` that it may begin with
        return NAME
    found = shutil.which(NAME)
    return NAME if found and os.path.realpath(found) == os.path.realpath(word) else shlex.quote(word)


def as_called(text: str) -> str:
    """Examples, written with the bare name."""
    return COMMAND.sub(lambda _: called(), text)
