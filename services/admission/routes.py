"""All routes of admission, by subject: what is served, what the API's document is made of, what the tests ask."""

from collections.abc import Callable
from typing import Final

from fastapi import APIRouter

from services.admission.api import Edge
from services.admission.api_bulk import bulk_routes
from services.admission.api_concurrency import group_routes, limit_routes, slot_routes
from services.admission.api_content import erasure_routes, input_routes, log_routes, result_routes
from services.admission.api_files import file_routes
from services.admission.api_jobs import life_routes, place_routes, submit_routes
from services.admission.api_leases import lease_routes
from services.admission.api_pipelines import pipeline_routes
from services.admission.api_policy import policy_routes
from services.admission.api_queue import audit_routes, pause_routes, queue_routes
from services.admission.api_reading import count_routes, job_routes, list_routes
from services.admission.api_stats import stats_routes
from services.admission.api_tickets import ticket_routes, token_routes
from services.admission.api_workflows import workflow_routes, workflow_submit_routes

ROUTES: Final[tuple[Callable[[Edge], APIRouter], ...]] = (
    submit_routes,
    bulk_routes,
    workflow_submit_routes,
    life_routes,
    place_routes,
    workflow_routes,
    list_routes,
    count_routes,
    job_routes,
    queue_routes,
    pause_routes,
    audit_routes,
    stats_routes,
    group_routes,
    lease_routes,
    slot_routes,
    limit_routes,
    input_routes,
    result_routes,
    file_routes,
    log_routes,
    ticket_routes,
    pipeline_routes,
    token_routes,
    policy_routes,
    erasure_routes,
)
