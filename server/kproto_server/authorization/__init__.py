"""Authorization: which rights each request needs, and what a client without them gets. No part of a broker without an
authorizer."""
