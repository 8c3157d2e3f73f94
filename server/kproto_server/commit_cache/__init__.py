"""The commit cache: responds to repeated OffsetCommit requests without decoding them."""
