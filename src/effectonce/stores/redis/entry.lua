-- What every script begins with: the server's clock, and how an entry is told.
-- A field that is not there has its first value: no deaths, not continued, no result. What has ended has no lease.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local CLAIMED, COMPLETED, FAILED, RELEASED, UNKNOWN, POISONED = '1', '2', '3', '4', '5', '6'

local function whole(number)
  return string.format('%.0f', number)
end

local function member(entry)
  return string.sub(entry, -32)
end

-- Answers false when there is none, else its fields and then the microseconds that its lease still has.
local function told(entry)
  local fields = redis.call('HMGET', entry, 'state', 'fence', 'attempt', 'key', 'identity', 'task', 'args', 'deaths',
    'attempts', 'retries', 'continued', 'handed', 'kept', 'result', 'since', 'ends')
  if not fields[1] then
    return false
  end
  fields[17] = whole((fields[16] or now) - now)
  return fields
end

-- Answers the state, and when the lease ends, if nobody has had the entry since this fence (rule 1); else false.
local function held(entry, attempt, fence)
  local old = redis.call('HMGET', entry, 'attempt', 'fence', 'state', 'ends')
  if old[1] == attempt and old[2] == fence then
    return old[3], tonumber(old[4])
  end
  return false
end

local function forget(entry, keep)
  if keep == '' then
    redis.call('PERSIST', entry)
  else
    redis.call('PEXPIRE', entry, keep)
  end
end

-- A step is a field of its effect's hash: 'step:' and its name; 'attempt fence began ended flags', a line end, the
-- result. *ended* is 0 while its end is not known.
local function step(old)
  local attempt, fence, began, ended, flags, at = string.match(old, '^(%x+) (%d+) (%d+) (%d+) (%d+)\n()')
  return {attempt = attempt, fence = fence, began = began, ended = ended, flags = tonumber(flags), result = at}
end

-- Answers the fields of all steps and what stands in them, one after the other.
local function steps(entry)
  local found = {}
  local all = redis.call('HGETALL', entry)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 5) == 'step:' then
      found[#found + 1] = all[i]
      found[#found + 1] = all[i + 1]
    end
  end
  return found
end
