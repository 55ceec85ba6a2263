"""The shop's face."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from shop.celery import once

from orders.models import Order
from orders.tasks import charge


@csrf_exempt
@require_POST
def take_order(request: HttpRequest) -> JsonResponse:
    """Store an order, and have it charged: the message commits with the request's transaction."""
    order = Order.objects.create(customer=request.POST["customer"], total=int(request.POST["total"]))
    with once.outbox():
        charge.delay(order.pk)
    return JsonResponse({"order": order.pk}, status=202)
