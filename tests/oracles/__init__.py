"""Independent reference solutions, written from the papers only, never from maxent."""
