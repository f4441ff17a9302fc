"""Writes the chart; with `--check` it only says whether it is up to date. It needs kubectl."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from libs.deployment import ROOT
from libs.deployment.chart.binaries import binary
from libs.deployment.chart.files import chart
from libs.deployment.generated import keep

FOLDER: Final = ROOT / "k8s" / "chart"


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.chart", description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(words).check
    kubectl = binary("kubectl")
    if kubectl is None:
        sys.stderr.write("k8s/chart is made by kubectl, which is not here\n")
        return 0 if check else 1
    texts = {FOLDER / path: text for path, text in chart(kubectl).items()}
    (FOLDER / "templates").mkdir(parents=True, exist_ok=True)
    left_over = [path for path in FOLDER.rglob("*") if path.is_file() and path not in texts]
    for path in left_over:
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)}: nothing makes it any more\n")
        else:
            path.unlink()
    return keep(texts, by="libs.deployment.chart", check=check) or int(check and bool(left_over))


if __name__ == "__main__":
    sys.exit(main())
