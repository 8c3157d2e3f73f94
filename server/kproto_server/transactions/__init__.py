"""The transaction coordinator: transactional ids, their producer ids and epochs, and the two phases of a commit."""
