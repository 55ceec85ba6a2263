"""Orders and payments. No constraint keeps an order from being paid twice: the task does."""

from django.db import models


class Order(models.Model):
    """What somebody wants."""

    customer = models.EmailField()
    total = models.PositiveIntegerField()
    is_paid = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"order {self.pk} of {self.customer}"


class Payment(models.Model):
    """What was taken for it."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="payments")
    amount = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.amount} for {self.order}"
