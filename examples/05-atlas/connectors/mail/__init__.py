"""Mail by IMAP and SMTP."""
