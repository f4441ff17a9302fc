-- Inputs that are kept, as bytes of their users: held with a reservation, then as the log says, until no retry can come.
-- `inputs` has JSON of user and bytes, of a reservation the digest of all that was asked, and whether the job has ended;
-- `stored` has the sums, under the empty name that of all.

local SWEPT_AT_ONCE = 1000

function inputs.stored(user)
  return tonumber(redis.call('HGET', key('stored'), user) or 0)
end

function inputs.of(id)
  local text = redis.call('HGET', key('inputs'), id)
  return text and cjson.decode(text)
end

local function count(user, more)
  for _, name in ipairs({ user, '' }) do
    if redis.call('HINCRBY', key('stored'), name, more) == 0 then
      redis.call('HDEL', key('stored'), name)
    end
  end
end

function inputs.drop(id)
  local kept = inputs.of(id)
  if kept then
    count(kept.user, -kept.bytes)
    redis.call('HDEL', key('inputs'), id)
    redis.call('ZREM', key('input_ends'), id)
    redis.call('ZREM', key('leaving', kept.user), id)
  end
end

-- In the place of what was held under the job's id. Most often that is as large, and no sum changes.
local function put(id, kept, ends)
  local old = inputs.of(id)
  if old and (old.user ~= kept.user or old.bytes ~= kept.bytes or old.ended) then
    inputs.drop(id)
    old = nil
  end
  if not old then
    count(kept.user, kept.bytes)
  end
  redis.call('HSET', key('inputs'), id, cjson.encode(kept))
  if ends then
    redis.call('ZADD', key('input_ends'), ends, id)
  elseif old then
    redis.call('ZREM', key('input_ends'), id)
  end
  if kept.ended then
    redis.call('ZADD', key('leaving', kept.user), ends, id)
  end
end

-- Those of a submission, for as long as its reservation stands.
function inputs.hold(ask, lapses)
  for id, bytes in pairs(ask.inputs) do
    put(id, { user = ask.user, bytes = bytes, digest = id == ask.id and ask.digest or nil }, lapses)
  end
end

-- As the log says: until its time is over, once the job has ended.
function inputs.fold(row)
  if row.input then
    put(row.id, { user = row.user, bytes = row.input, ended = row.input_until and true }, row.input_until)
  else
    inputs.drop(row.id)
  end
end

-- The job has left the view: its bytes are among those of its user that go in the same hour.
function inputs.forget(row)
  local kept = inputs.of(row.id)
  if kept then
    inputs.drop(row.id)
    inputs.leave(kept.user, kept.bytes, math.floor(row.input_until / 3600000) + 1)
  end
end

-- By this hour so many more bytes of the user have gone.
function inputs.leave(user, bytes, hour)
  local name = user .. ':' .. string.format('%.0f', hour)
  local known = inputs.of(name)
  put(name, { user = user, bytes = bytes + (known and known.bytes or 0), ended = true }, hour * 3600000)
end

function inputs.sweep()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('input_ends'), '-inf', now, 'LIMIT', 0, SWEPT_AT_ONCE)) do
    inputs.drop(id)
  end
end

-- How much one user may hold while all together hold `stored`: libs/capacity/rooms.py says why.
local function allowance(room, stored)
  if stored <= room.crowded_at then
    return room.share
  end
  local free = math.max(0, room.bucket - stored) / (room.bucket - room.crowded_at)
  return math.floor(room.share * free * free)
end

-- GIVES what is held, what may be, and when the first of the user's goes, where they may not hold what is asked.
function inputs.refusal(ask)
  local asked, own = 0, 0
  for id, bytes in pairs(ask.inputs) do
    local held = inputs.of(id)
    asked, own = asked + bytes, own + (held and held.bytes or 0)
  end
  local held, stored = inputs.stored(ask.user) - own, inputs.stored('') - own
  local most = allowance(ask.room, stored)
  if held + asked <= most and stored + asked <= ask.room.bucket then
    return nil
  end
  local first = redis.call('ZRANGE', key('leaving', ask.user), 0, 0, 'WITHSCORES')[2]
  return { 'bytes_full', held, most, first and math.max(1, first - now) }
end
