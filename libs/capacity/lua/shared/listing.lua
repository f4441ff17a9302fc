-- The queue as readers see it.
-- use: passing

function listing.queue(from, to)
  local found, entries = redis.call('ZRANGE', key('queue'), from, to, 'WITHSCORES'), {}
  for at = 1, #found, 2 do
    local job = redis.call('HMGET', key('job', found[at]), 'spot', 'passed')
    local is_row = job[1] and job[1] ~= ''
    entries[#entries + 1] = { found[at], found[at + 1], is_row and 0 or 1, passing.times(found[at], job[2]) }
  end
  return entries
end
