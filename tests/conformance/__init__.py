"""Every store of ours, held to the suite that is shipped for all stores."""
