-- Says who may run now, in order.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 how many at most, 4 only jobs of this class (empty: all)
--   GIVES    how far the view is folded · jobs and their seq · groups and the limits counted with · pools and their slots ·
--            1 where the looks of one call ran out before the queue did
--   KEEPS    picks are what a walk over the whole unpaused queue, or that class of it, would pick; nobody is given anything. A
--            job found blocked is parked, once per time it became eligible, and what it stood for is owed to those parked behind.
-- include: head.lua
-- include: time.lua
-- use: payment
-- use: catch_up
local LOOKS, AHEAD = 1000, 32 -- looks in one call, so that no call blocks the others; eligible jobs read at a time
local limit = tonumber(ARGV[3])

local picks, counted_with, slots = {}, {}, {}
local all, free, counted = {}, {}, {} -- pool → slots, those free of them; group → active
local picked, standing = {}, {} -- group → picks; pool and class → group → those that stand for a slot: picked or passed over
local ahead, cursor, last = {}, { score = '-inf', id = '' }, '+inf' -- pool → the next eligible ones; the last one looked at

local function keep_to(class)
  local from, above = queue.scores_of(class)
  cursor.score, last = string.format('%.0f', from), string.format('(%.0f', above)
end

local function count_free_slots()
  local paused = redis.call('HLEN', key('paused')) > 0
  if paused and redis.call('HEXISTS', key('paused'), 'all') == 1 then
    return
  end
  for _, pool in ipairs(redis.call('HKEYS', key('slots'))) do
    if not paused or redis.call('HEXISTS', key('paused'), 'pool:' .. pool) == 0 then
      all[pool] = limits.slots_of(pool)
      free[pool] = shutting.ends_of('pool:' .. pool) and 0 or all[pool] - limits.active('pool:' .. pool)
    end
  end
end

-- The eligible ones of a pool behind the cursor, last first, so that the next one is at the end.
local function read_ahead(pool)
  local found, from, page = { more = true }, 0, nil
  repeat
    page = redis.call('ZRANGEBYSCORE', key('eligible', pool), cursor.score, last, 'WITHSCORES', 'LIMIT', from, AHEAD)
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

local function is_full_with(group, row, taken)
  counted[group] = counted[group] or limits.active(group)
  return shutting.ends_of(group) ~= nil or quarantine.shuts(group)
    or counted[group] + (taken[group] or 0) >= limits.of(group, row.tier)
end

-- The first of the row's groups that is full where these are taken as running, or of its gates that is shut.
local function full_with(row, taken)
  limits.expect(row.groups)
  for _, group in ipairs(row.groups) do
    if is_full_with(group, row, taken) then
      return group
    end
  end
  for _, gate in ipairs(row.gates or {}) do
    if shutting.ends_of(gate) then
      return shutting.gate(gate)
    end
  end
  return nil
end

local function own_of(row)
  local name = row.pool .. '/' .. row.class
  standing[name] = standing[name] or {}
  return standing[name]
end

local function add_one(counts, groups)
  for _, group in ipairs(groups) do
    counts[group] = (counts[group] or 0) + 1
  end
end

local function pick(id, row, seq)
  picks[#picks + 1] = { id, tonumber(seq) }
  free[row.pool] = free[row.pool] - 1
  slots[row.pool] = all[row.pool]
  add_one(picked, row.groups)
  add_one(own_of(row), row.groups)
  for _, group in ipairs(row.groups) do
    counted_with[group] = limits.of(group, row.tier)
  end
end

-- Whoever is owed a look is to be on the walk before it goes on.
local function pay(looks)
  if redis.call('EXISTS', key('debtors')) == 0 then
    return looks, false
  end
  ahead = {}
  return payment.pay(looks)
end

-- It stood for a slot in its other groups, which another may have.
local function park_found(id, row, group, looks)
  queue.leave(id, row, 'eligible', true)
  queue.set_spot(id, queue.park(id, row, group))
  debts.owe_groups(row.groups, debts.bucket_of(group, row))
  return pay(looks)
end

-- It goes on standing for its slots and takes none in this walk: another may have those that picks have not filled.
local function pass_over(row, looks)
  local unfilled = {}
  for _, group in ipairs(row.groups) do
    if not is_full_with(group, row, picked) then
      unfilled[#unfilled + 1] = group
    end
  end
  add_one(own_of(row), row.groups)
  debts.owe_groups(unfilled)
  return pay(looks)
end

-- Only those of its own pool and class stand for it: picks of another may come to nothing.
local function look_at(id, looks)
  local job = redis.call('HMGET', key('job', id), 'shape', 'seq')
  local row = cjson.decode(job[1])
  if not full_with(row, picked) then
    pick(id, row, job[2])
    return looks, false
  end
  local group = full_with(row, own_of(row))
  if group then
    return park_found(id, row, group, looks)
  end
  return pass_over(row, looks)
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
  if ARGV[4] ~= '' then
    keep_to(ARGV[4])
  end
  count_free_slots()
  unpaid = walk(LOOKS)
end
return { tonumber(mark[4]), picks, pairs_of(counted_with), pairs_of(slots), unpaid and 1 or 0 }
