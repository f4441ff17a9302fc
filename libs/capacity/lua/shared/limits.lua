-- How many slots a group has, how many are held, and whether that is all of them: for leases, claims and
-- readers. Which jobs of a user or a project start is decided by memory/limits.py.
-- `tier` is that of the row that asks; nil: nobody's, then the most generous tier counts where a tier decides.
-- use: quarantine
-- use: shutting

local set, defaults, tiers, known = {}, {}, {}, {} -- what was read: any change of a limit forgets it

function limits.forget()
  set, defaults, tiers, known = {}, {}, {}, {}
end

local function read(into, from, names)
  local asked = {}
  for _, name in ipairs(names) do
    if into[name] == nil then
      asked[#asked + 1] = name
    end
  end
  if #asked > 0 then
    for at, value in ipairs(redis.call('HMGET', from, unpack(asked))) do
      into[asked[at]] = tonumber(value or '') or false
    end
  end
end

-- The first of these that policy names, or else `own`. What nothing names has no slot: a forgotten limit fails closed.
local function default_of(names, own)
  read(defaults, key('defaults'), names)
  for _, name in ipairs(names) do
    if defaults[name] then
      return defaults[name]
    end
  end
  return own or 0
end

-- A stage's own group ends with its limit.
local function own_limit(group)
  local digits = string.match(group, '^stage:.*:(%d+)$')
  return digits and #digits < 10 and tonumber(digits) or nil
end

local function most_generous(kind)
  local most, all = nil, redis.call('HGETALL', key('defaults'))
  for at = 1, #all, 2 do
    if string.find(all[at], '^' .. kind .. '/') then
      most = math.max(most or 0, tonumber(all[at + 1]))
    end
  end
  return most or default_of({ 'group' })
end

local function limit_by_tier(kind, tier)
  if not tier then
    return most_generous(kind)
  end
  read(defaults, key('defaults'), { 'user/' .. tier, 'project/' .. tier, 'group' }) -- a row asks for both
  return default_of({ kind .. '/' .. tier, 'group' })
end

function limits.learn_tier(user, tier)
  tiers[user] = tier
end

local function tier_of(user)
  if tiers[user] == nil then
    tiers[user] = redis.call('HGET', key('tiers'), user)
  end
  return tiers[user]
end

-- Where policy may name a group: in full, or by the last part of its name in every project.
function limits.names_in_policy(group)
  if string.find(group, '^group:') then
    return { group, 'group/' .. string.match(group, '[^:]*$') }
  end
  return { group }
end

function limits.slots_of(pool)
  local slots = tonumber(redis.call('HGET', key('slots'), pool) or 0)
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key('workers'), '-inf', now)) do -- silent, not swept yet
    local silent = redis.call('HMGET', key('worker', worker), 'pool', 'slots', 'draining')
    if silent[1] == pool and silent[3] == '0' then
      slots = slots - silent[2]
    end
  end
  return slots
end

local function find(group, tier)
  local kind, name = string.match(group, '^(%a+):(.*)$')
  if kind == 'pool' then
    return limits.slots_of(name)
  end
  read(set, key('limits'), { group })
  if set[group] then
    return set[group]
  elseif kind == 'user' then
    return limit_by_tier('user', tier_of(name))
  elseif kind == 'project' then
    return limit_by_tier('project', tier)
  end
  local names, own = limits.names_in_policy(group), own_limit(group)
  names[#names + 1] = not own and 'group' or nil
  return default_of(names, own)
end

function limits.of(group, tier)
  local name = tier and group .. '|' .. tier or group
  if not known[name] then
    known[name] = find(group, tier)
  end
  return known[name]
end

function limits.active(group)
  return redis.call('ZCOUNT', key('held', group), '(' .. now, '+inf')
end

function limits.is_full(group, tier)
  return shutting.ends_of(group) ~= nil or quarantine.shuts(group) or limits.active(group) >= limits.of(group, tier)
end

-- Reads at once what is set for several groups.
function limits.expect(groups)
  read(set, key('limits'), groups)
end

-- The first of the groups that has no slot; nil: there is one in each.
function limits.first_full(groups, tier)
  limits.expect(groups)
  for _, group in ipairs(groups) do
    if limits.is_full(group, tier) then
      return group
    end
  end
  return nil
end
