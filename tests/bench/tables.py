"""Parts that print their tables as tests: each file of its own, run by pytest with servers of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from tests.bench.asked import Asked, Part, Told
from tests.bench.page import tables_in

HERE: Final = Path(__file__).parent


class BrokenError(Exception):
    """{file} did not run to its end: {said}"""

    def __init__(self, file: str, said: str) -> None:
        super().__init__((type(self).__doc__ or "").format(file=file, said=said))


def printed(file: str) -> Part:
    """The tables of this file, once: what it repeats it repeats itself."""

    async def part(asked: Asked) -> Told:
        picture = asked.folder / "picture.svg"
        words = ("-m", "pytest", "-n", "0", "--capture=no", "-q", "-m", "bench", str(HERE / file))
        told = {
            "TEST_BACKEND": "embedded",
            "HEADGATE_BENCH_PLOT": str(picture),
            "HEADGATE_BENCH_SHARE": f"{asked.share}",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, env=os.environ | told, stdout=asyncio.subprocess.PIPE
        )
        said = (await process.communicate())[0].decode()
        if process.returncode:
            raise BrokenError(file, said[-2000:])
        return Told(
            tables_in(said), {Path(file).stem.removeprefix("bench_"): picture.read_text()} if picture.exists() else {}
        )

    return part
