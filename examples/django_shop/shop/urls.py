"""One address: orders are posted to it."""

from django.urls import path
from orders.views import take_order

urlpatterns = [path("orders", take_order)]
