"""Thirty web pages: three texts in ten site layouts, with required text and noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

COOKIES = (
    '<div id="cookie-consent" role="dialog"><h2>Your privacy</h2><p>We and our partners use cookies to store and '
    "access information on your device.</p><p>You can change your choice at any time in the cookie settings.</p>"
    "<button>Accept all</button><button>Reject all</button></div>"
)
MENU = (
    '<header><a href="#main">Skip to main content</a><nav aria-label="Main"><ul><li><a href="/">Home</a></li>'
    '<li><a href="/benefits">Benefits and money</a></li><li><a href="/work">Jobs and careers</a></li></ul></nav></header>'
)
FOOTER = (
    '<footer><ul><li><a href="/a">Accessibility statement</a></li><li><a href="/p">Privacy notice</a></li></ul>'
    "<p>© 2025 Example Council. All rights reserved.</p></footer>"
)
NOISE = (
    "use cookies to store",
    "Skip to main",
    "Jobs and careers",
    "All rights reserved",
    "Accessibility statement",
)


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a page."""

    title: str
    body: str
    # Parts that must be extracted.
    kept: tuple[str, ...]
    anchors: tuple[str, ...]


TEXTS = (
    Text(
        "Tenancy deposits",
        "<p>Your landlord must put your deposit in a protection scheme within 30 days of getting it.</p>"
        '<h2 id="schemes">Protection schemes</h2><p>There are three schemes. If you are not sure which one holds your '
        "money, ask each of them.</p><ul><li>Scheme A keeps the money itself.</li><li>Scheme B insures it for £20.</li></ul>"
        '<h3 id="late">If the deposit was protected late</h3><p>You may claim between one and three times the deposit. '
        "You cannot claim after six years.</p>"
        '<h2 id="end">At the end of the tenancy</h2><p>The deposit is paid back within 10 days of an agreement.</p>',
        (
            "within 30 days of getting it.",
            "There are three schemes.",
            "Scheme A keeps the money itself.",
            "Scheme B insures it for £20.",
            "You cannot claim after six years.",
            "within 10 days of an agreement.",
        ),
        ("schemes", "late", "end"),
    ),
    Text(
        "Fees for permits",
        "<p>All fees are reviewed each April. A permit is never refunded in part.</p>"
        '<h2 id="table">Fees by vehicle</h2><table><thead><tr><th>Vehicle</th><th>Six months</th><th>A year</th></tr>'
        "</thead><tbody><tr><td>Car</td><td>£41.50</td><td>£78.00</td></tr><tr><td>Motorcycle</td><td>£12.00</td>"
        "<td>£22.00</td></tr><tr><td>Van up to 3.5 t</td><td>£66.00</td><td>£120.00</td></tr></tbody></table>"
        '<h2 id="exempt">Who pays nothing</h2><p>Holders of a blue badge pay nothing. Carers pay half.</p>',
        (
            "A permit is never refunded in part.",
            "Motorcycle | £12.00 | £22.00",
            "Vehicle | Six months | A year",
            "£120.00",
            "Carers pay half.",
        ),
        ("table", "exempt"),
    ),
    Text(
        "Bleeding a radiator",
        "<p>Bleed a radiator when its top stays cold. Do not open the valve while the pump runs.</p>"
        '<h2 id="steps">What to do</h2><ol><li>Switch the heating off and wait for 20 minutes.</li>'
        "<li>Hold a cloth under the valve.</li><li>Turn the key a quarter to the left until water comes.</li></ol>"
        "<p><strong>Warning:</strong> the water may be hot.</p>"
        '<h2 id="pressure">The pressure afterwards</h2><p>Top the system up to 1.5 bar. Above 3 bar, call an engineer.</p>',
        (
            "Do not open the valve while the pump runs.",
            "1. Switch the heating off and wait for 20 minutes.",
            "3. Turn the key a quarter to the left until water comes.",
            "the water may be hot.",
            "Above 3 bar, call an engineer.",
        ),
        ("steps", "pressure"),
    ),
)


def _plain(text: Text) -> str:
    return f"{COOKIES}{MENU}<main id=main><h1>{text.title}</h1>{text.body}</main>{FOOTER}"


def _tables(text: Text) -> str:
    return (
        f"<table width=100%><tr><td colspan=2>{MENU}</td></tr><tr><td width=150><a href=/>Jobs and careers</a><br>"
        f"<a href=/x>News</a></td><td><h1>{text.title}</h1>{text.body}</td></tr><tr><td colspan=2>{FOOTER}</td></tr></table>"
    )


def _blog(text: Text) -> str:
    return (
        f'{MENU}<div id="page"><div class="content-area"><article class="post hentry"><h1 class="entry-title">{text.title}'
        f'</h1><div class="entry-meta">Posted by admin</div><div class="entry-content">{text.body}</div><div class="sharedaddy">'
        '<h3>Share this</h3><ul><li><a>Facebook</a></li></ul></div></article></div><aside class="widget-area sidebar">'
        "<h2>Recent posts</h2><ul><li><a href=/1>Jobs and careers fair</a></li></ul></aside></div>" + FOOTER
    )


def _government(text: Text) -> str:
    return (
        f'{COOKIES}{MENU}<div class="breadcrumbs"><ol><li><a href=/>Home</a></li><li><a href=/b>Benefits</a></li></ol></div>'
        f'<main><div class="two-thirds"><h1>{text.title}</h1>{text.body}</div><div class="one-third related"><h2>Related '
        "content</h2><nav><ul><li><a href=/c>Jobs and careers advice</a></li></ul></nav></div></main><div class=feedback>"
        f"<h2>Is this page useful?</h2><button>Yes</button><button>No</button></div>{FOOTER}"
    )


def _manual(text: Text) -> str:
    body = text.body.replace("</h2>", '<a class="headerlink" href="#x" title="Permalink">¶</a></h2>')
    return (
        f'<div class="related" role="navigation"><ul><li><a href=/n>next</a></li></ul></div><div class="document"><div '
        f'class="documentwrapper"><div class="body" role="main"><section id="top"><h1>{text.title}</h1>{body}</section>'
        '</div></div><div class="sphinxsidebar" role="navigation"><h3>Table of Contents</h3><ul><li><a href=#a>Jobs and '
        f"careers</a></li></ul></div></div>{FOOTER}"
    )


def _wiki(text: Text) -> str:
    body = text.body.replace("</h2>", '<span class="mw-editsection">[<a>edit</a>]</span></h2>')
    return (
        f'{MENU}<div id="content" class="mw-body"><h1 id="firstHeading">{text.title}</h1><div id="mw-content-text"><div '
        f'class="mw-parser-output">{body}</div></div></div><div id="mw-navigation"><h2>Navigation menu</h2></div>{FOOTER}'
    )


def _sections(text: Text) -> str:
    return (
        f"{MENU}<main><article><header><h1>{text.title}</h1></header><section>"
        + text.body.replace("<h2", "</section><section><h2")
        + f"</section></article><aside><p>Subscribe to our newsletter. Jobs and careers.</p></aside></main>{FOOTER}"
    )


def _soup(text: Text) -> str:
    body = text.body.replace("<p>", '<div class="rte"><p>').replace("</p>", "</p></div>")
    return (
        f'<div class="css-1x"><div class="css-2"><div class="nav-bar"><a>Home</a><a>Jobs and careers</a></div></div><div '
        f'class="css-9 container"><div class="row"><div class="col"><h1>{text.title}</h1>{body}</div></div></div>'
        f'<div class="footer-wrap"><p>© 2025 Example. All rights reserved.</p></div></div>{COOKIES}'
    )


def _comments(text: Text) -> str:
    return (
        f'{MENU}<main><article><h1>{text.title}</h1>{text.body}</article><div id="comments" class="comments-area"><h2>2 '
        "comments</h2><ol><li class=comment><p>Great post, see my shop: Jobs and careers!</p></li></ol></div></main>"
        + FOOTER
    )


def _hidden(text: Text) -> str:
    return (
        f"<style>.sr{{position:absolute;left:-9999px}}</style>{MENU}<main><h1>{text.title}</h1>{text.body}"
        '<p class=sr>Jobs and careers for machines.</p><p style="display:none">Skip to main hidden words.</p>'
        f"<template><p>All rights reserved template.</p></template></main>{FOOTER}"
    )


LAYOUTS: tuple[Callable[[Text], str], ...] = (
    _plain, _tables, _blog, _government, _manual, _wiki, _sections, _soup, _comments, _hidden,
)  # fmt: skip


def whole_page(layout: Callable[[Text], str], text: Text) -> str:
    """Return a page as a server sends it."""
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{text.title} - Example Council</title></head>"
        f"<body>{layout(text)}</body></html>"
    )
