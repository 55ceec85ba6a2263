"""What bodies write; without any unique constraint, so that what is written twice is there twice."""

from django.db import models


class Charge(models.Model):
    """A charge."""

    order = models.IntegerField()

    class Meta:
        app_label = "books"

    def __str__(self) -> str:
        return f"charge of {self.order}"


class Receipt(models.Model):
    """One for a charge; on PostgreSQL its reference is checked at the commit."""

    charge = models.ForeignKey(Charge, on_delete=models.CASCADE)
    number = models.IntegerField(unique=True)

    class Meta:
        app_label = "books"

    def __str__(self) -> str:
        return f"receipt {self.number}"
