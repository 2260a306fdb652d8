"""A FastAPI service whose agent runs hang under the spans of its HTTP requests."""
