"""The finalized features of a cluster: UpdateFeatures and ApiVersions."""
