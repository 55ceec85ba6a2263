-- Records that a holder begins a step, by fence and attempt; a start without an end of an earlier attempt is replaced.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 attempt in hex  4 field  5 flags
-- Answers 1 when it has begun, now or before; 0 when it is fenced.
local entry, field = KEYS[1], ARGV[4]
if held(entry, ARGV[1], ARGV[2]) ~= CLAIMED then
  return 0
end
local old = redis.call('HGET', entry, field)
local was = old and step(old)
if not was or (was.ended == '0' and was.attempt ~= ARGV[3]) then
  redis.call('HSET', entry, field, string.format('%s %s %s 0 %s\n', ARGV[3], ARGV[2], whole(now), ARGV[5]))
end
return 1
