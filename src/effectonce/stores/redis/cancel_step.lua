-- Takes the start of a step back, by fence and attempt.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 field
-- Answers 1, or 0 when it is fenced.
if held(KEYS[1], ARGV[1], ARGV[2]) ~= CLAIMED then
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[3])
return 1
