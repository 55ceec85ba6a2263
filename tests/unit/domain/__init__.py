"""The decisions of the domain, one by one."""
