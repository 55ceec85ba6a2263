-- Finds claims whose lease ended more than one lease ago.
-- KEYS  claims of each slot
-- ARGV  1 how many at most
-- Answers their digests in hex.
local most, due = tonumber(ARGV[1]), {}
for _, claims in ipairs(KEYS) do
  if #due >= most then
    break
  end
  local found = redis.call('ZRANGEBYSCORE', claims, '-inf', '(' .. whole(now), 'LIMIT', 0, most - #due)
  for _, digest in ipairs(found) do
    due[#due + 1] = digest
  end
end
return due
