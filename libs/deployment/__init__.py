"""What an installation needs beside the services: its servers' users, its secrets, and its gateway's configuration."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]  # of the tree
