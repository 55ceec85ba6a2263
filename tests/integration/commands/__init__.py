"""What people do with single effects, by command and from Python."""
