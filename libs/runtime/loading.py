"""Runs a module as `python -m` does, the garbage collector at rest until all is loaded: `python -m libs.runtime.loading
services.scheduler`.

What a service imports lasts as long as it does, and the collector would look at it again and again meanwhile: a tenth
to a third of the time. `Service.live` puts it aside and lets the collector go on.

It runs once its standard input has ended, or at once in a terminal: so a supervisor can have it load while its servers
start.
"""

import gc
import importlib
import importlib.util
import os
import runpy
import sys


def load(module: str) -> None:
    """What its `__main__` imports; of a module that has none there is nothing to load without running it."""
    found = importlib.util.find_spec(module)
    if found is not None and found.submodule_search_locations is not None:
        importlib.import_module(name := f"{module}.__main__")
        del sys.modules[name]  # it is run as what it is named, and once


def main() -> None:
    gc.disable()
    del sys.argv[0]
    load(sys.argv[0])
    while not os.isatty(0) and os.read(0, 1):
        pass
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
