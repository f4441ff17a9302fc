-- The queue as readers see it.
-- use: passing

function listing.queue(from, to)
  local found, entries = redis.call('ZRANGE', key('queue'), from, to, 'WITHSCORES'), {}
  for at = 1, #found, 2 do
    local job = redis.call('HMGET', key('job', found[at]), 'reservation', 'passed')
    entries[#entries + 1] = { found[at], found[at + 1], job[1] and 1 or 0, passing.times(found[at], job[2]) }
  end
  return entries
end
