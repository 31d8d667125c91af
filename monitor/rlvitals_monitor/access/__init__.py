"""Who may come in, and how: passwords, pace of sign-ins, sessions, tokens, people, shared links."""
