-- Tells entries as they stand.
-- KEYS  entries
-- Answers one entry as told, or nil, for each.
local entries = {}
for i, entry in ipairs(KEYS) do
  entries[i] = told(entry)
end
return entries
