-- Its holder needs a lease no more, or waits for it no more.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 lease
--   GIVES    the grants
--   KEEPS    a running job's own slots are not to be given up here: the log frees them
-- include: head.lua
-- include: time.lua
-- use: leases
leases.stop_waiting(ARGV[3])
leases.hand_on(leases.let_go(ARGV[3]))
return grants.told()
