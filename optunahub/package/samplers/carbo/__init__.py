from carbo import CarboSampler

__all__ = ["CarboSampler"]
