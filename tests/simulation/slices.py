"""What a proof has come to so far, kept beside its page: so it can be made in slices, and goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.simulation.evidence import Finding
from tests.simulation.hunting import Hunt
from tests.simulation.proof import Swept

NOTHING = Swept(0, 0, took_s=0.0, processes=1)


@dataclass(slots=True)
class Slices:
    """All that earlier slices have swept and hunted, and this one."""

    path: Path
    swept: Swept = NOTHING
    hunts: dict[str, Hunt] = field(default_factory=dict[str, Hunt])

    @classmethod
    def of(cls, page: Path, *, rest: bool) -> Slices:
        """What is kept beside the page, or nothing where it is to be made anew."""
        path = page.with_suffix(".json")
        if not rest or not path.exists():
            return cls(path)
        kept = json.loads(path.read_text(encoding="utf-8"))
        hunts = {name: _hunt(name, **each) for name, each in kept["hunts"].items()}
        return cls(path, Swept(**kept["swept"]), hunts)

    def sweep(self, more: Swept) -> None:
        """Seeds that come right after those before."""
        before = self.swept
        took_s, records = round(before.took_s + more.took_s, 1), before.records + more.records
        self.swept = Swept(more.seeds, records, took_s=took_s, processes=more.processes)
        self._keep()

    def hunt(self, hunt: Hunt) -> None:
        self.hunts[hunt.bug] = hunt
        self._keep()

    def searched(self, bug: str) -> int:
        """Up to which seed nothing has found it."""
        hunt = self.hunts.get(bug)
        return 0 if hunt is None else hunt.seeds

    def at_large(self, names: Sequence[str], *, within: int) -> list[str]:
        """Those that are still to be looked for."""
        found = {name for name, hunt in self.hunts.items() if hunt.finding is not None}
        return [name for name in names if name not in found and self.searched(name) < within]

    def _keep(self) -> None:
        hunts = {name: {"seeds": each.seeds, "finding": _shown(each)} for name, each in sorted(self.hunts.items())}
        text = json.dumps({"swept": asdict(self.swept), "hunts": hunts}, indent=1)
        self.path.write_text(f"{text}\n", encoding="utf-8")


def _hunt(name: str, *, seeds: int, finding: list[str] | None) -> Hunt:
    return Hunt(name, seeds, None if finding is None else Finding(*finding))


def _shown(hunt: Hunt) -> list[str] | None:
    found = hunt.finding
    return None if found is None else [found.invariant, found.about, found.what]
