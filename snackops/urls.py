"""All addresses of the product."""

from django.urls import include, path

urlpatterns = [path("", include("queue_app.urls"))]

handler400 = "queue_app.views.errors.bad_request"
handler403 = "queue_app.views.errors.permission_denied"
handler404 = "queue_app.views.errors.page_not_found"
handler500 = "queue_app.views.errors.server_error"
