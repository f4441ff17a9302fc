"""One attempt in this worker's hands: how long it is ours, what is done next, what gets into the log, what is kept.

    run ── tenure                   its life; how long it is ours, and what breaks it off
     ├──── executor ── process      what follows what; its process, as the worker sees it
     ├──── chain                    the only way into the log
     └──── checkpoints · slots · lines (secrets)

All of it runs in the worker's own process, beside its credentials.
"""
