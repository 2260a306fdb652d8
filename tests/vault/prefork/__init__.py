"""Applications that record in forked workers; the tests start them as their users would."""
