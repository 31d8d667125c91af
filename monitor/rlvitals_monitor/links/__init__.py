"""What the links in messages lead to: a page that says what would happen, and one thing done, once."""
