-- Says who may run now, in order.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 how many at most
--   GIVES    how far the view is folded · jobs and their seq · groups and the limits counted with · pools and their slots ·
--            1 where the looks of one call ran out before the queue did
--   KEEPS    picks are what a walk over the whole unpaused queue would pick; nobody is given anything. A job found blocked
--            is parked, once per time it became eligible, and what it stood for is owed to those parked behind.
-- include: head.lua
-- include: time.lua
-- use: payment
-- use: catch_up
local LOOKS, AHEAD = 1000, 32 -- looks in one call, so that no call blocks the others; eligible jobs read at a time
local limit = tonumber(ARGV[3])

local picks, counted_with, slots = {}, {}, {}
local all, free, counted = {}, {}, {} -- pool → slots, those free of them; group → active
local picked, picked_in = {}, {} -- group → picks, pool → group → picks
local ahead, cursor = {}, { score = '-inf', id = '' } -- pool → the next eligible ones; the last one looked at

local function count_free_slots()
  local paused = redis.call('HLEN', key('paused')) > 0
  if paused and redis.call('HEXISTS', key('paused'), 'all') == 1 then
    return
  end
  for _, pool in ipairs(redis.call('HKEYS', key('slots'))) do
    if not paused or redis.call('HEXISTS', key('paused'), 'pool:' .. pool) == 0 then
      all[pool] = limits.slots_of(pool)
      free[pool] = all[pool] - limits.active('pool:' .. pool)
    end
  end
end

-- The eligible ones of a pool behind the cursor, last first, so that the next one is at the end.
local function read_ahead(pool)
  local found, from, page = { more = true }, 0, nil
  repeat
    page = redis.call('ZRANGEBYSCORE', key('eligible', pool), cursor.score, '+inf', 'WITHSCORES', 'LIMIT', from, AHEAD)
    for at = #page - 1, 1, -2 do
      if page[at + 1] ~= cursor.score or page[at] > cursor.id then
        found[#found + 1] = { id = page[at], score = page[at + 1], number = tonumber(page[at + 1]) }
      end
    end
    from = from + AHEAD
    found.more = #page == 2 * AHEAD
  until #found > 0 or not found.more
  return found
end

local function goes_first(one, other)
  return not other or one.number < other.number or one.number == other.number and one.id < other.id
end

-- The first behind the cursor of all pools that have a free slot.
local function next_eligible()
  local first, first_pool
  for pool, count in pairs(free) do
    if count > 0 then
      if not ahead[pool] or #ahead[pool] == 0 and ahead[pool].more then
        ahead[pool] = read_ahead(pool)
      end
      local head = ahead[pool][#ahead[pool]]
      if head and goes_first(head, first) then
        first, first_pool = head, pool
      end
    end
  end
  return first, first_pool
end

-- The first of the row's groups that is full where these picks are taken as running.
local function full_with(row, picks_by_group)
  limits.expect(row.groups)
  for _, group in ipairs(row.groups) do
    counted[group] = counted[group] or limits.active(group)
    if quarantine.shuts(group) or counted[group] + (picks_by_group[group] or 0) >= limits.of(group, row.tier) then
      return group
    end
  end
  return nil
end

local function pick(id, row, seq)
  picks[#picks + 1] = { id, tonumber(seq) }
  free[row.pool] = free[row.pool] - 1
  slots[row.pool] = all[row.pool]
  local own = picked_in[row.pool] or {}
  picked_in[row.pool] = own
  for _, group in ipairs(row.groups) do
    picked[group], own[group] = (picked[group] or 0) + 1, (own[group] or 0) + 1
    counted_with[group] = limits.of(group, row.tier)
  end
end

-- It stood for a slot in its other groups: whoever may have that is to be on the walk before it goes on.
local function park_found(id, row, group, looks)
  queue.leave(id, row, 'eligible', true)
  queue.set_spot(id, queue.park(id, row, group))
  debts.owe_groups(row.groups, debts.bucket_of(group, row))
  if redis.call('EXISTS', key('debtors')) == 0 then
    return looks, false
  end
  ahead = {}
  return payment.pay(looks)
end

-- Only picks of its own pool stand for it: those of another may come to nothing, as that pool's slots may.
local function look_at(id, looks)
  local job = redis.call('HMGET', key('job', id), 'shape', 'seq')
  local row = cjson.decode(job[1])
  if not full_with(row, picked) then
    pick(id, row, job[2])
    return looks, false
  end
  local group = full_with(row, picked_in[row.pool] or {})
  if not group then
    return looks, false
  end
  return park_found(id, row, group, looks)
end

-- GIVES whether it stopped before it had seen all there is.
local function walk(looks)
  local unpaid = false
  while #picks < limit and not unpaid do
    local head, pool = next_eligible()
    if not head or looks == 0 then
      return head ~= nil
    end
    table.remove(ahead[pool])
    cursor = head
    looks, unpaid = look_at(head.id, looks - 1)
  end
  return unpaid
end

local function pairs_of(numbers)
  local list = {}
  for name, number in pairs(numbers) do
    list[#list + 1] = { name, number }
  end
  return list
end

catch_up.all()
grants.tell_later()
local _, unpaid = payment.pay(LOOKS)
if not unpaid then
  count_free_slots()
  unpaid = walk(LOOKS)
end
return { tonumber(mark[4]), picks, pairs_of(counted_with), pairs_of(slots), unpaid and 1 or 0 }
