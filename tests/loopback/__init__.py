"""A model vendor, a trace ingest and an OTLP collector, all on the loopback interface."""
