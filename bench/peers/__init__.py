"""The measured servers, all prepared, started and stopped in the same way."""
