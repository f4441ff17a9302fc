-- What the end of a quarantine or of a pause sets off: whatever it blocked is looked at again.
-- use: leases

function reopening.if_over()
  if not quarantine.end_if_over() then
    return
  end
  for _, bucket in ipairs(redis.call('ZRANGE', key('buckets'), 0, -1)) do
    if quarantine.concerns((debts.measure_of(bucket))) then
      debts.owe_all(bucket)
    end
  end
  local awaited = {}
  for _, group in ipairs(redis.call('ZRANGE', key('awaited'), 0, -1)) do
    if quarantine.concerns(group) then
      awaited[#awaited + 1] = group
    end
  end
  leases.wake(awaited)
end

local function owe_all_of(group)
  for _, bucket in ipairs(debts.buckets_of(group)) do
    debts.owe_all(bucket)
  end
end

-- Groups that were shut until now or before.
function reopening.of_shut()
  local opened = shutting.open()
  for _, group in ipairs(opened) do
    owe_all_of(group)
    owe_all_of(shutting.gate(group))
  end
  leases.wake(opened)
end
