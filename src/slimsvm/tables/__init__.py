"""Tables of words, numbers, dates and holes, and what prepares their rows for a kernel machine."""
