"""Errors of the API as problem details (RFC 9457); none reveals its cause."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import ValidationError

from bot.web import security
from bot.web.api.models import FieldProblem, Problem
from bot.web.middleware import is_unreadable, log_failure, require_known_charset
from storage.errors import InfrastructureError

PROBLEM_JSON = "application/problem+json"
# Rate limits count by the minute.
RETRY_SECONDS = 60

# Details of errors that have none of their own.
DETAILS = {
    400: "The request is malformed.",
    401: "Send a token: Authorization: Bearer TOKEN. An admin creates one with footnote tokens create.",
    403: "The token does not permit this.",
    404: "There is no such thing, or the token does not open it.",
    405: "The resource does not support this method.",
    406: "The resource has no representation of an accepted type.",
    409: "The channel has this file already.",
    413: "The request is too large.",
    415: "The request has the wrong content type.",
    422: "The request is not valid.",
    429: "Too many questions within a minute. Try again later.",
    500: "Something went wrong on our side.",
    503: "Something on our side doesn't respond. Try again later.",
}


class ApiError(Exception):
    """Error of a request, with its HTTP status."""

    def __init__(self, status: int, detail: str = "", errors: list[FieldProblem] | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail or DETAILS[status],
            errors=errors or [],
        )

    @classmethod
    def of_validation(cls, error: ValidationError) -> ApiError:
        """Return the error of a body that does not fit its model: 400 if it is no JSON, else 422."""
        found = error.errors(include_url=False, include_context=False, include_input=False)
        if any(one["type"] == "json_invalid" for one in found):
            return cls(400, "The body is not JSON.")
        fields = [
            FieldProblem(pointer="".join(f"/{part}" for part in one["loc"]), detail=one["msg"])
            for one in found
        ]
        return cls(422, errors=fields)


def problem_response(problem: Problem) -> web.Response:
    """Return a problem as a response."""
    headers = dict(security.NO_STORE)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status == HTTPStatus.TOO_MANY_REQUESTS:
        headers["Retry-After"] = str(RETRY_SECONDS)
    body = problem.model_dump_json(exclude={"errors"} if not problem.errors else None)
    return web.Response(status=problem.status, body=body.encode(), content_type=PROBLEM_JSON, headers=headers)


@web.middleware
async def render_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error of a request into a problem."""
    try:
        require_known_charset(request)
        return await handler(request)
    except ApiError as error:
        return problem_response(error.problem)
    except web.HTTPException as refusal:
        response = problem_response(ApiError(refusal.status if refusal.status in DETAILS else 400).problem)
        if allowed := refusal.headers.get("Allow"):
            response.headers["Allow"] = allowed
        return response
    except (InfrastructureError, TimeoutError):
        return problem_response(ApiError(503).problem)
    except Exception as error:  # outermost boundary: details go to the log only
        if is_unreadable(request, error):
            return problem_response(ApiError(400).problem)
        log_failure(request, error)
        return problem_response(ApiError(500).problem)
