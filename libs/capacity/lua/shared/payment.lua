-- Paying debts: the first parked job of a bucket that is owed a look becomes eligible, or goes to what blocks it now.
-- use: queue

local function look_at_first(bucket)
  local id = redis.call('ZRANGE', key('parked', bucket), 0, 0)[1]
  local row = cjson.decode(redis.call('HGET', key('job', id), 'shape'))
  queue.unpark(id, bucket)
  local spot = queue.enter(id, row)
  queue.set_spot(id, spot)
  if spot == 'eligible' and redis.call('HEXISTS', key('debts'), bucket) == 1
    and redis.call('HINCRBY', key('debts'), bucket, -1) == 0 then
    debts.forgive(bucket)
  end
end

-- Buckets in the order of their names, for as many looks. GIVES how many are left, and whether somebody is still owed one.
function payment.pay(looks)
  local bucket = redis.call('ZRANGE', key('debtors'), 0, 0)[1]
  while bucket and looks > 0 do
    if limits.is_full(debts.measure_of(bucket)) then
      debts.forgive(bucket) -- every slot that comes free makes a new debt
    else
      look_at_first(bucket)
      looks = looks - 1
    end
    bucket = redis.call('ZRANGE', key('debtors'), 0, 0)[1]
  end
  return looks, bucket ~= nil
end
