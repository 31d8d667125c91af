"""From alerts that fire together to one cause: a table, as data, and the pure function that reads it."""
