-- Puts one job into a view that is being made.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 generation, 4 lease of a running job (ms), 5 how often it was passed,
--            6 id, then the row: 7 shape (JSON), 8 status, 9 seq, 10 cancelling ('1' or empty), 11 worker, 12 the job (JSON)
--   GIVES    OK
--   KEEPS    the same seed twice is one job; limits and counts of others are as begin set them
-- include: building.lua
if mark[2] == '1' then
  return redis.error_reply('VIEW_LOST this generation is open: it is folded, not seeded')
end
-- include: time.lua
-- use: rows
local job = redis.call('HMGET', key('job', ARGV[6]), 'shape', 'status')
local row = cjson.decode(ARGV[7])
redis.call('HSETNX', key('tiers'), row.user, row.tier)
rows.replace({ shape = job[1], status = job[2] }, row, {
  shape = ARGV[7], status = ARGV[8], seq = ARGV[9], cancelling = ARGV[10], worker = ARGV[11], doc = ARGV[12], passed = ARGV[5],
}, tonumber(ARGV[4]))
return redis.status_reply('OK')
