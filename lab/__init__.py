"""The laboratory: what carbo is measured with."""
