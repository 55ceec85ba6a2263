-- Releases claims whose lease ended more than one lease ago, and counts a death for each (rule 17).
-- KEYS  entry and claims of the first, of the second, ...
-- Answers for each the entry as it was, or nil when it was not released.
local rescued = {}
for i = 1, #KEYS / 2 do
  local entry, claims = KEYS[2 * i - 1], KEYS[2 * i]
  local old = told(entry)
  rescued[i] = false
  local lease = redis.call('HGET', entry, 'lease')
  if not old or old[1] ~= CLAIMED then
    redis.call('ZREM', claims, member(entry))
  elseif now > old[16] + lease then
    rescued[i] = old
    redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
    redis.call('HSET', entry, 'state', RELEASED, 'since', whole(now))
    redis.call('HINCRBY', entry, 'deaths', 1)
    forget(entry, redis.call('HGET', entry, 'keep'))
  end
end
return rescued
