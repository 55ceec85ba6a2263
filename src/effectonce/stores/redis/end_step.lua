-- Records the end of a step, by fence and attempt.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 field  4 flags to add  5 result (absent: None)
-- Answers 1 when it has ended, now or before; 0 when it is fenced.
local entry, field = KEYS[1], ARGV[3]
if held(entry, ARGV[1], ARGV[2]) ~= CLAIMED then
  return 0
end
local old = redis.call('HGET', entry, field)
if not old then
  return 0
end
local was = step(old)
if was.ended == '0' then
  redis.call('HDEL', entry, field)  -- first: after it, a server that is full takes the rest too
  local head = string.format('%s %s %s %s %d\n', was.attempt, was.fence, was.began, whole(now), was.flags + ARGV[4])
  redis.call('HSET', entry, field, head .. (ARGV[5] and '+' .. ARGV[5] or ''))
end
return 1
