"""Addresses of the console."""

from django.urls import URLPattern, URLResolver, path, register_converter

from queue_app.views import (
    account,
    audit,
    exports,
    groups,
    health,
    investigations,
    order_lists,
    orders,
    overview,
    processes,
    quarantine,
    queues,
    reconciliations,
    redrive_asking,
    redrive_items,
    redrives,
    saved_filters,
)
from queue_app.views.converters import JobId, QueueName, Small

register_converter(JobId, "job")
register_converter(QueueName, "queue")
register_converter(Small, "small")

urlpatterns: list[URLPattern | URLResolver] = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("sign-in/", account.SignIn.as_view(), name="sign_in"),
    path("sign-out/", account.SignOut.as_view(), name="sign_out"),
    path("account/password/", account.ChangePassword.as_view(), name="password_change"),
    path("account/preferences/", account.preferences, name="preferences"),
    path("account/language/", account.language, name="language"),
    path("account/theme/", account.theme, name="theme"),
    path("", overview.overview, name="overview"),
    path("live/", overview.overview_live, name="overview_live"),
    path("quarantine/", quarantine.quarantine_list, name="quarantine_list"),
    path("quarantine/newer/", quarantine.quarantine_newer, name="quarantine_newer"),
    path("quarantine/export/", exports.quarantine_export, name="quarantine_export"),
    path("quarantine/filters/", saved_filters.saved_filter_new, name="saved_filter_new"),
    path("quarantine/filters/<small:filter_id>/delete/", saved_filters.saved_filter_delete, name="saved_filter_delete"),
    path("causes/", groups.group_list, name="group_list"),
    path("causes/<queue:queue>/<slug:reason>/<slug:code>/", groups.group, name="group"),
    path("investigations/", investigations.investigation_list, name="investigation_list"),
    path("investigations/new/", investigations.investigation_new, name="investigation_new"),
    path("investigations/presence/", investigations.investigation_presence, name="investigation_presence"),
    path("orders/", order_lists.order_list, name="order_list"),
    path("orders/<job:job_id>/", orders.job, name="job"),
    path("orders/<job:job_id>/unblock/", orders.job_unblock, name="job_unblock"),
    path("orders/<job:job_id>/contents/", orders.job_payload, name="job_payload"),
    path("workers/", processes.process_list, name="process_list"),
    path("workers/live/", processes.process_live, name="process_live"),
    path("workers/drain/", processes.process_drain, name="process_drain"),
    path("queues/", queues.queue_list, name="queue_list"),
    path("queues/<queue:queue>/move/", queues.queue_move, name="queue_move"),
    path("queues/<queue:queue>/limits/", queues.queue_limits, name="queue_limits"),
    path("receiver/", reconciliations.reconciliations, name="reconciliations"),
    path("audit/", audit.audit_list, name="audit_list"),
    path("audit/export/", audit.audit_export, name="audit_export"),
    path("audit/<small:seq>/", audit.audit_event, name="audit_event"),
    path("redrives/", redrive_asking.redrive_list, name="redrive_list"),
    path("redrives/new/", redrive_asking.redrive_new, name="redrive_new"),
    path("redrives/<small:plan_id>/", redrives.redrive, name="redrive"),
    path("redrives/<small:plan_id>/live/", redrives.redrive_live, name="redrive_live"),
    path("redrives/<small:plan_id>/orders/", redrive_items.redrive_items, name="redrive_items"),
    path("redrives/<small:plan_id>/export/", redrive_items.redrive_export, name="redrive_export"),
    path("redrives/<small:plan_id>/decide/", redrives.redrive_decide, name="redrive_decide"),
    path("redrives/<small:plan_id>/move/", redrives.redrive_move, name="redrive_move"),
]
