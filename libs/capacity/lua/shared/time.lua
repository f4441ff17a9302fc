-- now: ms since 1970, as passed (ARGV[2]) or, where that is empty, by the server's clock. No other clock counts in the view.
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
