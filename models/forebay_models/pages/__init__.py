"""Pages for people: one self-contained HTML file each, which opens from disk and needs no network.

The parts are jinja2 templates beside this file. Everything that comes from a run is escaped: texts
by jinja2, and the data of a viewer by `embedded`, since a record may well contain `</script>`.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from forebay_models.documents import Json

if TYPE_CHECKING:
    from jinja2 import Environment

_ESCAPES: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&'\u2028\u2029"}


def render(template: str, values: Mapping[str, object]) -> str:
    """Return a page.

    Args:
        template: the name of a file beside this one.
        values: what the template asks for.
    """
    return _environment().get_template(template).render(values)


def embedded(data: Json) -> str:
    """Return data as JSON that may stand inside a `<script>` element, whatever texts are in it."""
    return json.dumps(data, separators=(",", ":")).translate(_ESCAPES)


def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("forebay_models", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["embedded"] = lambda data: Markup(embedded(data))
    return environment
