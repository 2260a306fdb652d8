"""The viewer in Debian's Chromium: what a reader sees, and what hostile content cannot do."""
