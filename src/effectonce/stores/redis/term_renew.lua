-- Lets a term that has not ended end later.
-- KEYS  1 seat
-- ARGV  1 fence  2 holder  3 length (us)
-- Answers 1, or 0 when it has ended or is another's.
if not stands(KEYS[1], ARGV[1], ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'ends', whole(now + ARGV[3]))
return 1
