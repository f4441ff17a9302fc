-- Places of a user's days.

function days.today()
  return math.floor(now / 86400000)
end

-- Places of it that are taken: by jobs that are known, by reservations, and by jobs that are gone.
function days.used(user, day)
  return redis.call('SCARD', key('quota', user, day)) + tonumber(redis.call('HGET', key('used', day), user) or 0)
end

-- The first of these days on which the user has a free place, but for one; nil: none.
function days.first_free(user, first, last, per_day, spared)
  for day = first, last do
    if day ~= spared and days.used(user, day) < per_day then
      return day
    end
  end
  return nil
end
