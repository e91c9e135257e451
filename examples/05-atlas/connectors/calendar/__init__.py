"""A calendar by CalDAV."""
