-- Places of a user's days.

function days.today()
  return math.floor(now / 86400000)
end

-- The first of these days on which the user has a free place, but for one; nil: none.
function days.first_free(user, first, last, per_day, spared)
  for day = first, last do
    if day ~= spared and redis.call('SCARD', key('quota', user, day)) < per_day then
      return day
    end
  end
  return nil
end
