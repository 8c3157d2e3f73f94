"""What a consumer does when its offset is gone: accidents that are made to happen to a real client, on demand."""
