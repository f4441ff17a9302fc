-- Refused submissions: a field for each hour and reason.

local HOUR_MS, HOURS = 3600000, 24

local function this_hour()
  return now - now % HOUR_MS
end

function refusals.field(reason)
  return string.format('%.0f:', this_hour()) .. reason
end

-- Whether the field is of one of the hours that are kept.
function refusals.counts(field)
  return tonumber(string.match(field, '^%d+')) > this_hour() - HOURS * HOUR_MS
end

function refusals.forget_old()
  for _, field in ipairs(redis.call('HKEYS', key('refused'))) do
    if not refusals.counts(field) then
      redis.call('HDEL', key('refused'), field)
    end
  end
end
