"""What a page must be made of under the strict policy, read from its HTML: `faults(html)` names what is not so."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "use": "href"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.forms: list[dict[str, str]] = []  # every form: method, token
        self._open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._look(tag, given)
        if tag == "form":
            self.forms.append(
                {"method": given.get("method", "get").lower(), "token": "", "action": given.get("action", "")}
            )
        inside = [name for name, _given in self._open]
        if tag == "input" and given.get("name") == "csrfmiddlewaretoken" and "form" in inside:
            self.forms[-1]["token"] = given.get("value", "")
        if any(name in given for name in ("hx-post", "hx-put", "hx-patch", "hx-delete")):
            headers = [more.get("hx-headers", "") for _name, more in self._open] + [given.get("hx-headers", "")]
            if not ({"form"} & {*inside, tag}) and not any("X-CSRFToken" in one for one in headers):
                self.faults.append(f"<{tag} hx-post> outside of every form sends no token")
        if tag not in VOID:
            self._open.append((tag, given))

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if self._open.pop()[0] == tag:
                return

    def _look(self, tag: str, given: dict[str, str]) -> None:
        if tag == "style" or "style" in given:
            self.faults.append(f"inline style in <{tag}>")
        if tag == "script" and not given.get("src"):
            self.faults.append("inline script")
        if tag in ("base", "object", "embed", "iframe"):
            self.faults.append(f"<{tag}>")
        for name, value in given.items():
            if name.startswith(("on", "hx-on")):
                self.faults.append(f"{name} in <{tag}>")
            if value.strip().lower().startswith(("javascript:", "vbscript:")):
                self.faults.append(f"script as the address in <{tag} {name}>")
        loaded = given.get(LOADS.get(tag, ""), "")
        if urlsplit(loaded).netloc:
            self.faults.append(f"<{tag}> from another host")


def faults(html: str) -> list[str]:
    """What breaks the policy, and each form that changes without a token or reads with one (it would be in the address)."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    for form in reader.forms:
        if form["method"] == "post" and len(form["token"]) < 32:
            reader.faults.append(f"a form without a token, to {form['action']!r}")
        if form["method"] != "post" and form["token"]:
            reader.faults.append(f"a token in an address, to {form['action']!r}")
    return reader.faults
