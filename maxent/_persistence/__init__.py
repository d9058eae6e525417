"""Model files: written without pickle, checked before anything is believed."""
