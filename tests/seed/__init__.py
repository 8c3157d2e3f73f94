"""Seeds: what a broker has from its start on."""
