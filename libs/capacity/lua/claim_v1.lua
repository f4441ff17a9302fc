-- Takes slots for jobs that are about to be dispatched, in groups that leases want too: each gets all it wants, or nothing.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 how far the caller's fold is, 4 for how long (ms), 5 claims (JSON list of holder,
--            groups, gates), 6 holders whose claims came to nothing (JSON list)
--   GIVES    holders that hold what they claimed · of each other one: holder, the group that is full or shut, how many slots of
--            it are held by those of whom the log does not tell, until when it is shut (ms), until when it is in quarantine (ms)
--   KEEPS    the waiters for a slot are served first. Where the view is not where the caller's fold is, nothing is taken. A claim
--            is the job's until its next row, or until it lapses in a sweep
-- include: head.lua
-- include: time.lua
-- use: claims
-- use: catch_up
local lapses = now + tonumber(ARGV[4])
local names, held, blocked = {}, {}, {}

catch_up.all()
for _, holder in ipairs(cjson.decode(ARGV[6])) do
  claims.drop(holder)
end
for _, wanted in ipairs(mark[4] == ARGV[3] and cjson.decode(ARGV[5]) or {}) do
  local blocker = claims.blocker_of(wanted)
  if blocker then
    blocked[#blocked + 1] = { wanted.holder, blocker }
  else
    claims.hold(wanted, lapses)
    names[#names + 1], held[wanted.holder] = wanted.holder, true
  end
end
grants.tell_later()
for at, each in ipairs(blocked) do
  local group = each[2]
  local quarantined_until = quarantine.shuts(group) and quarantine.ends_at()
  blocked[at] = { each[1], group, claims.others_in(group, held), shutting.ends_of(group) or false, quarantined_until }
end
return { names, blocked }
