"""Addresses of the console."""

urlpatterns: list = []
