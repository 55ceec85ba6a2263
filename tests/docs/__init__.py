"""What the pages say stands in the code, and what the code has stands in the pages."""
