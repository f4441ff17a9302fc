"""A Headgate in memory, for applications' own tests: the real services over the twins of log, view and buckets.

Owns what stands in for servers, processes and time. Refuses to be measured, or to be used where jobs must last.
"""

from libs.twins.driving import TwinFailed
from libs.twins.exchange import Exchange, Silence, TwinRequest
from libs.twins.system import TwinSystem

__all__ = ["Exchange", "Silence", "TwinFailed", "TwinRequest", "TwinSystem"]
