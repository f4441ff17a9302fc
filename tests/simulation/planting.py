"""One function in the place of another, by name: `planted("services.worker.domain:still_ours", twin)`.

By name and not by line, so that a fault survives whatever is moved around it. A function is replaced wherever it was
imported to, a method in its class.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def planted(name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """`make` is given the sound one and gives its faulty twin."""
    module_name, _, path = name.partition(":")
    *holders, last = path.split(".")
    holder: Any = importlib.import_module(module_name)
    for each in holders:
        holder = getattr(holder, each)
    sound = vars(holder)[last]
    twin = make(sound)
    places = [holder] if holders else _modules_with(last, sound)
    for place in places:
        setattr(place, last, twin)
    try:
        yield
    finally:
        for place in places:
            setattr(place, last, sound)


_SEEN: dict[str, tuple[int, list[Any]]] = {}  # name → how many modules there were, and those that had it


def _modules_with(name: str, value: object) -> list[Any]:
    """Wherever it was imported to. They are looked through again where there are more modules by now."""
    loaded, seen = _SEEN.get(name, (0, []))
    if loaded != len(sys.modules) or not all(_has(module, name, value) for module in seen):
        seen = [module for module in tuple(sys.modules.values()) if _has(module, name, value)]
        _SEEN[name] = len(sys.modules), seen
    return list(seen)


def _has(module: Any, name: str, value: object) -> bool:
    return getattr(module, "__dict__", {}).get(name) is value
