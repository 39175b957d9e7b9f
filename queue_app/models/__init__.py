"""The tables (DESIGN section 3). Rows are written only by `queue_app.store`."""

from queue_app.models.audit import AuditEvent, Head
from queue_app.models.counters import Count, Flow, Result, Tally
from queue_app.models.evidence import Failure, LateFinish, Tombstone, Unblock
from queue_app.models.investigations import InvestigatedGroup, Investigation
from queue_app.models.jobs import Job
from queue_app.models.people import Preference, Presence, SavedFilter
from queue_app.models.plans import Approval, Hold, Plan, PlanGroup, PlanItem
from queue_app.models.processes import Process
from queue_app.models.queues import Gate, Queue
from queue_app.models.reconciliations import Reconciliation
from queue_app.models.redrives import Redrive, RedriveOutcome

__all__ = [
    "Approval",
    "AuditEvent",
    "Count",
    "Failure",
    "Flow",
    "Gate",
    "Head",
    "Hold",
    "InvestigatedGroup",
    "Investigation",
    "Job",
    "LateFinish",
    "Plan",
    "PlanGroup",
    "PlanItem",
    "Preference",
    "Presence",
    "Process",
    "Queue",
    "Reconciliation",
    "Redrive",
    "RedriveOutcome",
    "Result",
    "SavedFilter",
    "Tally",
    "Tombstone",
    "Unblock",
]
