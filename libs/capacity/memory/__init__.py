"""The view in memory: the rules in plain Python, the twin of the Redis store, and the engine of the forecast.

view.py      the interface, and what a store holds between two generations
life.py      begin, seed, open, fold: what a row or an order changes
entering.py  who may enter: reservations, release, days, room, each user's pace
places.py    the queue: where a job lands, who stands where
blocking.py  eligible jobs, buckets of blocked ones, debts
planning.py  the walk that picks who may run
claims.py    slots that a job takes before it is dispatched
slots.py     holders, leases, waiters, what is shut
workers.py   heartbeats and the sweep
reading.py   what readers are told
state.py     all that is held, and the limits
"""

from libs.capacity.memory.view import MemoryStore, MemoryView

__all__ = ["MemoryStore", "MemoryView"]
