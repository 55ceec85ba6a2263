-- Ends a reservation, if this holder has it.
-- KEYS  1 reservation
-- ARGV  1 holder
-- Answers 1 when it had it, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
