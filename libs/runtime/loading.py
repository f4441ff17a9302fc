"""Runs a module as `python -m` does, the garbage collector at rest until all is loaded: `python -m libs.runtime.loading
services.scheduler`.

What a service imports lasts as long as it does, and the collector would look at it again and again meanwhile: a tenth
to a third of the time. `Service.live` puts it aside and lets the collector go on.
"""

import gc
import runpy
import sys

if __name__ == "__main__":
    gc.disable()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
