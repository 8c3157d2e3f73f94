"""The commit cache: repeated OffsetCommit requests are answered without being decoded."""
