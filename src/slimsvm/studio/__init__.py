"""The studio: comparing methods, tuning, reports, pictures and the command line, all built on the library."""
