-- A view that is being made: stands first in the verbs that fill and open it.
--   KEYS[1]  the shard's view; every other key is named by key('<name>', …)
--   ARGV[1]  the epoch of the caller's log
--   ARGV[3]  the generation that the caller has begun
--   GIVES    the error VIEW_LOST where the view is of another epoch or generation: somebody has begun a newer one
local mark = redis.call('HMGET', KEYS[1], 'epoch', 'open', 'generation', 'applied', 'quarantine_until', 'untold', 'arrivals',
  'shut')
if mark[1] ~= ARGV[1] or mark[3] ~= ARGV[3] then
  return redis.error_reply('VIEW_LOST the view is of another epoch or generation')
end
space = string.sub(KEYS[1], 1, -5) .. mark[3] .. ':' -- `view` is four letters
