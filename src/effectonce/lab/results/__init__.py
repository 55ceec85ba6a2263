"""What the lab has measured: as JSON (`report`), as text (`text`), as a page (`page`, `timeline`), as Markdown."""
