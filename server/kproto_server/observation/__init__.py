"""What clients did: counted while they do it, told afterwards."""
