-- An open view of the caller's log, or nothing: stands first in every verb but those that make a view.
--   KEYS[1]  the shard's view; every other key is named by key('<name>', …)
--   ARGV[1]  the epoch of the caller's log
--   GIVES    the error VIEW_LOST where the view is missing, closed or of another epoch
local mark = redis.call('HMGET', KEYS[1], 'epoch', 'open', 'generation', 'applied', 'quarantine_until', 'untold', 'arrivals',
  'shut')
if mark[1] ~= ARGV[1] or mark[2] ~= '1' then
  return redis.error_reply('VIEW_LOST the view is missing, closed or of another epoch')
end
space = string.sub(KEYS[1], 1, -5) .. mark[3] .. ':' -- `view` is four letters
