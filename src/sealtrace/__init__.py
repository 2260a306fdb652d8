"""sealtrace."""
