"""Documents of people, as files below one folder."""
