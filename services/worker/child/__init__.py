"""The processes without a credential: the one that attempts are forked from, and those of attempts.

    worker ── messages ──► spawner ──fork──► life ── link (the socket) · folder (the disk) · packing

Nothing here opens a connection. What the worker holds of them is in `services.worker.children`.
"""
