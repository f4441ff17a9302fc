-- Ends what time alone has ended. Called only by who has folded all there was in the log: a reservation whose event stands
-- there already is then replaced and does not lapse.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    the grants · jobs whose reservation has lapsed · workers that were silent too long
--   KEEPS    running jobs' own leases are not swept: they come up as due, and the log frees their slots
-- include: head.lua
-- include: time.lua
-- use: reservations
-- use: claims
-- use: catch_up
-- use: workers
-- use: refusals
-- use: inputs
-- use: ended
local lapsed = reservations.lapse()
claims.lapse()
redis.call('ZREMRANGEBYSCORE', key('spent'), '-inf', now)
redis.call('ZREMRANGEBYSCORE', key('given_up'), '-inf', now)
refusals.forget_old()
inputs.sweep()
ended.sweep()
catch_up.all()
local gone = redis.call('ZRANGEBYSCORE', key('workers'), '-inf', now)
for _, worker in ipairs(gone) do
  workers.drop(worker)
end
return { grants.told(), lapsed, gone }
