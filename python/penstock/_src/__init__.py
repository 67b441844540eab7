"""The implementation of Penstock's Python API; users import penstock, penstock.fluid and penstock.hvd."""
