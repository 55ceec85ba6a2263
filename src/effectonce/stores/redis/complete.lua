-- Ends a claim for good, by fence and attempt.
-- KEYS  1 entry  2 claims
-- ARGV  1 attempt  2 fence  3 state  4 keep (ms, '' for ever)  5 handed  6 continued  7 kept  8 result (absent: None)
-- Answers 1 when this attempt has completed it, now or before; 0 when it is fenced.
local entry, claims = KEYS[1], KEYS[2]
local state = held(entry, ARGV[1], ARGV[2])
if state == COMPLETED or state == FAILED then
  return 1
end
if state ~= CLAIMED then
  return 0
end
redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
redis.call('HSET', entry, 'state', ARGV[3], 'since', whole(now))
redis.call('HDEL', entry, 'ends', 'lease', 'keep')
for i, flag in ipairs({'handed', 'continued', 'kept'}) do
  if ARGV[4 + i] == '1' then
    redis.call('HSET', entry, flag, 1)
  end
end
if ARGV[8] then
  redis.call('HSET', entry, 'result', ARGV[8])
end
forget(entry, ARGV[4])
return 1
