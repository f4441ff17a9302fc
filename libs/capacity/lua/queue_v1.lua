-- Lists the queue, in order.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 how many to pass over, 4 how many to give
--   GIVES    per job: id, score as text, 1 where it is reserved, how often it was passed
--   KEEPS    changes nothing
-- include: head.lua
-- use: listing
return listing.queue(tonumber(ARGV[3]), ARGV[3] + ARGV[4] - 1)
