"""Timers and reminders: kept in a file, fired once, told to who waits and to a webhook."""
