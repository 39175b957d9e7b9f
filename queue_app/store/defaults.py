"""Rows that every installation has, made idempotently after each migration and each flush of a test."""

from django.contrib.auth.models import Group
from django.db import connections

from queue_app.models import Head, Queue
from queue_app.policy.chain import GENESIS
from queue_app.policy.rights import ROLES


def create_all(using: str = "default") -> None:
    """The queue `snacks`, the heads of the growing sequences, and the three groups."""
    tables = set(connections[using].introspection.table_names())
    if "queues" in tables:
        Queue.objects.using(using).get_or_create(name="snacks")
    if "heads" in tables:
        Head.objects.using(using).get_or_create(name="chain", defaults={"hash": GENESIS})
        Head.objects.using(using).get_or_create(name="jobs")
    if "auth_group" in tables:
        for role in ROLES:
            Group.objects.using(using).get_or_create(name=role)
