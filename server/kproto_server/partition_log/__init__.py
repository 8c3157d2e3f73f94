"""What producers have written to a partition, and consumers read from it: pure decisions over batches."""
