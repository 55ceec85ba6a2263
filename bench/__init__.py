"""What is measured, one file each: `just bench` runs all, `just bench overhead` one; results go to bench/results."""
