"""Tables, figures and pages written from recorded runs."""
