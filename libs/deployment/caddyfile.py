"""The gateway's configuration as a file, for compose and Kubernetes: `python -m libs.deployment.caddyfile`.

With `--check` it only says whether the file is up to date. What is in it stands in `libs.local.caddyfile`; here are the
names under which both know the services.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from libs.deployment.generated import ROOT, keep
from libs.local.caddyfile import Caddyfile

FILE: Final = ROOT / "k8s" / "components" / "ingress" / "Caddyfile"


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.caddyfile")
    parser.add_argument("--check", action="store_true")
    text = Caddyfile(admission="admission:8080", notifier="notifier:8080").render()
    return keep({FILE: text}, by="libs.deployment.caddyfile", check=parser.parse_args(words).check)


if __name__ == "__main__":
    sys.exit(main())
