"""Assembles viewer, console and health endpoints into one aiohttp application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from aiohttp import web

from bot.answers.citations.signed_links import Links
from bot.chat.conversation.queue_limits import QuestionRateLimiter
from bot.core.ports import QuestionAnswering
from bot.quality.monthly_usage import TokenPrices
from bot.settings import Settings
from bot.uploads.folder_uploads import FolderUploads
from bot.uploads.upload_places import UploadPlaces
from bot.web.admin.admin_pages import AdminPages
from bot.web.admin.conversations_page import ConversationsPage
from bot.web.admin.documents_page import DocumentsPage
from bot.web.admin.page_browser import PageBrowser
from bot.web.admin.quality_page import QualityPage
from bot.web.admin.search_debugger import SearchDebugger, TraceQuestion
from bot.web.admin.settings_page import EffectiveSetting, SettingsPage
from bot.web.admin.uploads_page import UploadsPage
from bot.web.admin.usage_page import UsagePage
from bot.web.api.api_service import ApiService
from bot.web.api.http_api import HttpApi
from bot.web.api.mcp_endpoint import McpEndpoint
from bot.web.connections import ConnectionLimits, Runner
from bot.web.console.console import Console
from bot.web.console.feedback_panel import FeedbackPanel
from bot.web.console.folder_panel import FolderPanel
from bot.web.figure_images import FigureImages
from bot.web.middleware import (
    API_PATH,
    CountRequest,
    RenewalUrls,
    add_headers,
    default_headers,
    except_programs,
    log_access,
    render_errors,
    store_console_secret,
)
from bot.web.page_images import PageImages
from bot.web.readiness import Readiness
from bot.web.security import CONSOLE_SECRET, PUBLIC_ORIGIN
from bot.web.sign_in.sign_in import SignIn
from bot.web.source_archive import SourceArchive
from bot.web.source_openings import SourceOpenings
from bot.web.templates import Assets, Templates
from bot.web.viewer.document_search import DocumentSearch
from bot.web.viewer.search_page import SearchPage
from bot.web.viewer.viewer import Viewer
from storage.documents.document_overview import DocumentOverview
from storage.sql.audit import AuditLog
from storage.stores import Stores

# Maximum request body; events of chat platforms are far smaller.
BODY_BYTES = 1024 * 1024
# Default headers of an application's responses.
DEFAULT_HEADERS: web.AppKey[Mapping[str, str]] = web.AppKey("default_headers")


def build_web(
    *,
    answering: QuestionAnswering,
    trace: TraceQuestion,
    stores: Stores,
    links: Links,
    images: PageImages,
    settings: Settings,
    readiness: Readiness,
    api: ApiService,
    console_secret: str | None,
    extra_routes: Iterable[web.AbstractRouteDef] = (),
    console_routes: Iterable[web.AbstractRouteDef] = (),
    renewal_urls: RenewalUrls = lambda *_: {},
    count_request: CountRequest | None = None,
    count_opening: Callable[[], None] | None = None,
    effective_settings: Sequence[EffectiveSetting] = (),
) -> web.Application:
    """Return the whole web side as one application.

    Args:
        trace: answers a question for the search debugger, without storing its record.
        console_secret: opens the console on this machine; None: it is closed.
        console_routes: routes added only if the console is open to this machine.
        renewal_urls: returns where members get new links.
        count_request: called for every answered request.
        count_opening: called when a person opens a source.
        effective_settings: settings of the service, for the console.
    """
    assets = Assets()
    pages = Templates(assets, settings.bot.source_url, settings.bot.link_days)
    middlewares = [log_access(count_request), except_programs(render_errors(pages, renewal_urls))]
    if console_secret is not None:
        middlewares.append(store_console_secret(pages))
    signing_in = SignIn(settings.sign_in, links, stores.database, pages) if settings.sign_in else None
    if signing_in:
        middlewares.append(signing_in.middleware())
    app = web.Application(middlewares=middlewares, client_max_size=BODY_BYTES)
    app[DEFAULT_HEADERS] = default_headers(links.public_url)
    app.on_response_prepare.append(add_headers(app[DEFAULT_HEADERS]))
    app.add_routes(_common_routes(assets, readiness))
    app.add_routes(_about_routes(pages, settings))
    search = SearchPage(DocumentSearch(stores.readings), pages)
    openings = SourceOpenings(stores.citations, count_opening)
    app.cleanup_ctx.append(openings.cleanup_context)
    viewer = Viewer(links, stores, images, pages, search=search, openings=openings)
    app.add_routes(viewer.routes())
    app.cleanup_ctx.append(viewer.audit.cleanup_context)
    app.add_routes(FigureImages(links, stores, images).routes(pages))
    if console_secret is not None:
        app[CONSOLE_SECRET] = console_secret
        app.add_routes(console_routes)
    if signing_in:
        app[PUBLIC_ORIGIN] = signing_in.origin
        app.add_routes(signing_in.routes())
    if console_secret is not None or signing_in:
        _add_console(
            app,
            answering=answering,
            trace=trace,
            stores=stores,
            links=links,
            images=images,
            pages=pages,
            search=search,
            settings=settings,
            effective_settings=effective_settings,
        )
    app.add_routes(extra_routes)
    endpoint = McpEndpoint(api)
    app.add_routes(endpoint.routes())
    app.cleanup_ctx.append(endpoint.cleanup_context)
    app.add_subapp(API_PATH, HttpApi(api, images, links).application())
    return app


def _add_console(
    app: web.Application,
    *,
    answering: QuestionAnswering,
    trace: TraceQuestion,
    stores: Stores,
    links: Links,
    images: PageImages,
    pages: Templates,
    search: SearchPage,
    settings: Settings,
    effective_settings: Sequence[EffectiveSetting],
) -> None:
    """Add the console and the admin pages; access rules are in ``security``."""
    rates, question_chars = QuestionRateLimiter(settings.bot), settings.bot.question_chars
    places = UploadPlaces(stores.folders, stores.channels, settings.inbox)
    console = Console(
        answering=answering,
        stores=stores,
        links=links,
        pages=pages,
        places=places,
        rates=rates,
        question_chars=question_chars,
    )
    app.add_routes(console.routes())
    app.add_routes(FolderPanel(stores).routes())
    app.add_routes(FeedbackPanel(stores).routes())
    admin = AdminPages(stores.channels, pages)
    app.add_routes(SearchDebugger(admin, stores.records, trace, rates, question_chars).routes())
    app.add_routes(ConversationsPage(admin, stores.records).routes())
    app.add_routes(QualityPage(admin, stores.records).routes())
    app.add_routes(
        UsagePage(
            admin,
            stores.records,
            TokenPrices(settings.bot.model_prompt_price, settings.bot.model_completion_price),
        ).routes()
    )
    app.add_routes(SettingsPage(admin, effective_settings).routes())
    overview = DocumentOverview(stores.database, stores.catalog)
    app.add_routes(DocumentsPage(admin, overview, places, stores.database).routes())
    uploads = FolderUploads(settings.storage.max_file_mb)
    app.add_routes(UploadsPage(admin, places, uploads, overview, AuditLog(stores.database)).routes())
    app.on_cleanup.append(lambda _: uploads.aclose())
    app.add_routes(PageBrowser(stores, images, pages, search).routes())


def make_runner(app: web.Application, limits: ConnectionLimits) -> web.AppRunner:
    """Return the runner of an application made by ``build_web``."""
    return Runner(app, app[DEFAULT_HEADERS], limits)


def _common_routes(assets: Assets, readiness: Readiness) -> list[web.RouteDef]:
    async def healthz(request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(request: web.Request) -> web.Response:
        reasons = await readiness.reasons()
        said = {"ready": not reasons, "not_ready": list(reasons), "reasons": reasons}
        return web.json_response(said, status=503 if reasons else 200)

    return [
        web.get("/healthz", healthz, name="healthz"),
        web.get("/readyz", readyz, name="readyz"),
        web.get("/static/{file}", assets.serve, name="static"),
        web.get("/favicon.ico", assets.serve_favicon, name="favicon"),
        web.get("/source.tar.gz", SourceArchive().serve, name="source"),
    ]


def _about_routes(pages: Templates, settings: Settings) -> list[web.RouteDef]:
    """Return the pages that the app's entries in Slack and Teams link to; no document or channel is named."""
    values = {
        "kept": settings.storage,
        "link_days": settings.bot.link_days,
        "model_hosts": settings.model_hosts,
    }

    async def show(request: web.Request) -> web.Response:
        return pages.plain("about.html", name=request.path.rpartition("/")[2], **values)

    return [web.get(f"/{name}", show, name=name) for name in ("about", "privacy", "terms")]
