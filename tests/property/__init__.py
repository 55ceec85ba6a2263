"""Laws, tried with many made-up cases."""
