"""What runs where: the processes of Celery in Compose, Kubernetes, Procfile, systemd, supervisord and scripts.

Every format is read into the same two facts: a `Process` (a command of Celery with its replicas, grace period and
restart strategy) and a `Broker` (a Redis or RabbitMQ with its volume and its policy of eviction).
"""
