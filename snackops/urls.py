"""All addresses of the product."""

from django.urls import include, path

urlpatterns = [path("", include("queue_app.urls"))]
