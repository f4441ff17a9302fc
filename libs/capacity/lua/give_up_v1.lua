-- Its holder needs a lease no more, or waits for it no more.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 lease, 4 whose it has to be (or empty: anybody's), 5 '1': what is held is kept
--   GIVES    the grants
--   KEEPS    a running job's own slots are not to be given up here: the log frees them. What a stage gave up it does not hold
--            again, by no message that was under way.
-- include: head.lua
-- include: time.lua
-- use: leases
local OVER_MS = 120000 -- how long a message about a lease that was given up may still be under way

if ARGV[4] == '' then
  redis.call('ZADD', key('given_up'), now + OVER_MS, ARGV[3])
end
if ARGV[4] == '' or leases.user_of(ARGV[3]) == ARGV[4] then
  leases.stop_waiting(ARGV[3])
  if ARGV[5] == '' then
    leases.wake(leases.let_go(ARGV[3]))
  end
end
return grants.told()
