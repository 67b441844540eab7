"""The documentation builds without a warning, its pages have a sensible size, links are valid, and each layer,
operator and error id is explained. test_docs_examples.py runs the examples of the pages."""

import collections
import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest
from penstock import _penstock
from penstock._src.transpile import settings
from penstock._src.transpile.config import DistributeTranspilerConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "python" / "docs"
sys.path.insert(0, str(DOCS))  # the scripts that make pages import each other

import error_pages  # noqa: E402
import operator_pages  # noqa: E402
import setting_pages  # noqa: E402
import tasks  # noqa: E402

MODES = DOCS / "pages" / "reference" / "modes.md"
LIMIT_S = 600
MOST_LINKS = 40  # of the front page
LARGEST_PAGE = 400_000  # bytes of HTML
WIDEST_COMMAND = 80  # characters of a line that does not wrap
SHARED_REMEDY = 16  # errors that may share one remedy
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ID = re.compile(r'[\'"](E-[a-z]+(?:-[a-z0-9]+)*)[\'"]')
SETTINGS_OF_MODES = (
    "backup_trainers",
    "bn_sync",
    "chunk_bytes",
    "clip",
    "collective_mode",
    "completely_not_async",
    "compression",
    "enable_dc_asgd",
    "exchange",
    "geo_sgd_need_push_nums",
    "half_async",
    "local_sgd_adaptive",
    "local_sgd_k_steps",
    "on_uneven",
    "runtime_split_send_recv",
    "staleness",
    "sync_mode",
)
SOURCES = ("framework", "operators", "transpiler", "executor", "python/penstock", "python/src", "tools")


class Page(html.parser.HTMLParser):
    """The links of a page, its anchors, and the text of its blocks of code."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.code, self._depth = [], set(), [], 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors.update(found[key] for key in ("id", "name") if found.get(key))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag == "pre":
            self._depth += 1
            self.code.append("")

    def handle_endtag(self, tag):
        self._depth -= tag == "pre"

    def handle_data(self, data):
        if self._depth:
            self.code[-1] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """{path below html/: Page} of a build, which must not warn, and the folder html/."""
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, DOCS / "build.py", "--out", folder],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    html = folder / "html"
    return {str(path.relative_to(html)): Page(path) for path in html.rglob("*.html")}, html


def test_the_pages_build_without_a_warning(site):
    pages, html = site
    sources = [
        path.relative_to(html.parent / "source").with_suffix(".html")
        for path in (html.parent / "source").rglob("*")
        if path.suffix in (".md", ".rst")
    ]
    assert len(sources) > 100 and [str(page) for page in sources if str(page) not in pages] == []
    page = (html / "reference/api/layers/dense.html").read_text()
    assert "fully connected layer" in page and "Example" in page
    assert "elementwise_add" in (html / "reference/operators/index.html").read_text()
    assert "--hang_timeout" in (html / "reference/commands/launch.html").read_text()
    for page in (
        "index",
        "install",
        "changes",
        "tutorials/pservers",
        "howto/from_fluid",
        "concepts/roles",
        "reference/modes",
        "reference/errors/index",
        "reference/api/index",
    ):
        assert page + ".html" in pages, page


def test_the_front_page_has_few_links(site):
    links = site[0]["index.html"].links
    assert 10 <= len(links) <= MOST_LINKS, links


def test_no_page_is_large(site):
    sizes = {page: (site[1] / page).stat().st_size for page in site[0]}
    assert {page: size for page, size in sizes.items() if size > LARGEST_PAGE} == {}


def test_links_between_pages_lead_to_pages_and_anchors(site):
    pages, html = site
    broken, seen = [], 0
    for page, parsed in pages.items():
        for link in parsed.links:
            if re.match(r"\w+:", link):
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            path = (html / page).parent.joinpath(target).resolve() if target else html / page
            seen += 1
            found = pages.get(str(path.relative_to(html.resolve()))) if path.is_relative_to(html.resolve()) else None
            if not path.exists() or (anchor and found and anchor not in found.anchors):
                broken.append(f"{page}: {link}")
    assert not broken and seen > 1000


def test_commands_wrap(site):
    lines = [
        line
        for page, parsed in site[0].items()
        if page.startswith("reference/commands/")
        for code in parsed.code
        for line in code.splitlines()
    ]
    assert len(lines) > 10 and [line for line in lines if len(line) > WIDEST_COMMAND] == []


def test_pictures_follow_the_theme(site):
    for name in ("roles", "slices", "versions", "tables", "exchange"):
        page = (site[1] / "concepts" / (name + ".html")).read_text()
        assert "<svg" in page and "aria-label=" in page and "<figcaption>" in page
        assert not re.search(r'<svg.*?(fill|stroke)="#', page, re.DOTALL), "a color that the dark theme cannot change"


def test_each_layer_has_a_task():
    from penstock.fluid import layers

    listed = [name for *_, names in tasks.LAYERS for name in names.split()]
    assert [name for name, count in collections.Counter(listed).items() if count > 1] == []
    assert sorted(set(layers.__all__) - set(listed)) == [], "python/docs/tasks.py lists no task for these"
    assert sorted(set(listed) - set(layers.__all__)) == []


def test_each_operator_has_a_family():
    _, sections = operator_pages.read_operators()
    families = operator_pages.family_of_ops(sections)
    assert len(families) > 300 and [op for op, family in families.items() if family == "other"] == []


def test_the_page_of_settings_lists_variables_that_exist():
    page = (DOCS / "pages" / "reference" / "settings.md").read_text()
    mentioned = set(re.findall(r"`(PENSTOCK_[A-Z_]+)`", page))
    known = set(_penstock.setting_names())
    told_by_the_launcher = {
        "PENSTOCK_ELASTIC_FD",
        "PENSTOCK_FLIGHT_FD",
        "PENSTOCK_JOB_ID",
        "PENSTOCK_JOB_TOKEN",
        "PENSTOCK_LAUNCH_FD",
        "PENSTOCK_LOG_DIR",
        "PENSTOCK_RESTART_COUNT",
        "PENSTOCK_ROLE_RESTART_COUNT",
    }
    assert mentioned - known <= {"PENSTOCK_MPI"}
    assert {name for name in known if name.startswith("PENSTOCK_")} - mentioned - told_by_the_launcher == set()


def test_the_modes_page_lists_each_setting():
    page = MODES.read_text() + setting_pages.brief_table()
    assert "{include} ../settings_brief.txt" in page
    for field in SETTINGS_OF_MODES:
        assert hasattr(DistributeTranspilerConfig, field) and field in page, field


def test_each_setting_is_in_a_table():
    page = (DOCS / "pages" / "reference" / "settings.md").read_text()
    for group in settings.GROUPS:
        assert f"{{include}} ../settings_{group}.txt" in page, group
    tables = "".join(map(setting_pages.group_table, settings.GROUPS))
    keys = setting_pages.key_table()
    assert len(settings.ROWS) > 30 and {row.group for row in settings.ROWS} == set(settings.GROUPS)
    for row in settings.ROWS:
        for name in (row.field, row.argument, row.rank_argument):
            assert not name or f"`{name}`" in tables, name
        assert not row.key or f"| `{row.key}` |" in keys, row.key
        assert not row.flag or f"`--{row.flag.replace('_', '-')}`" in tables, row.flag


def test_each_mode_documents_its_guarantee_and_use():
    page = MODES.read_text()
    with_servers = page.split("## With parameter servers")[1].split("### Fleet")[0]
    modes = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", with_servers, re.DOTALL | re.MULTILINE))
    assert len(modes) >= 9
    for mode, text in modes.items():
        assert "*Promise:* " in text and "*Use it* " in text, mode
    joint = page.split("## All-reduce and parameter servers together")[1].split("\n## ")[0]
    assert "*Promise:* " in joint and "*Use it* " in joint


def markdown_files():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in listed.stdout.split()] or pytest.fail("git lists no Markdown files")


def test_links_between_files_resolve():
    broken, seen = [], 0
    for path in markdown_files():
        if DOCS / "pages" in path.parents:  # links to pages that are generated; the build checks them
            continue
        for target in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)):
            if "://" in target or target.startswith(("#", "mailto:")):
                continue
            seen += 1
            if not (path.parent / target.partition("#")[0]).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken and seen > 0


def sources():
    """The text of each source file that may raise an error."""
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=False)
    return [
        (ROOT / name).read_text()
        for name in listed.stdout.split()
        if name.endswith((".cc", ".h", ".cu", ".def", ".py")) and not name.startswith("tools/dev/")
    ]


def test_each_error_is_explained():
    rows = [line.split("\t") for line in (DOCS / "errors.tsv").read_text().splitlines()]
    assert all(len(row) == 3 and all(row) for row in rows), "a row of errors.tsv has an id, a meaning and a remedy"
    listed = [row[0] for row in rows]
    assert listed == sorted(set(listed))
    texts = sources()
    ids = set().union(*map(ID.findall, texts))
    assert len(ids) > 300
    assert sorted(ids - set(listed)) == [], "errors.tsv does not explain these"
    spelled = set(re.findall(r"\bE-[a-z0-9-]+", "\n".join(texts)))
    assert sorted(set(listed) - spelled) == [], "nothing raises these"


def test_errors_have_remedies_of_their_own():
    rows = error_pages.read_errors()
    shared = collections.Counter(remedy for _, _, remedy in rows)
    assert {remedy: count for remedy, count in shared.items() if count > SHARED_REMEDY} == {}
    assert [id for id, _, _ in rows if error_pages.family_of(id) is None] == [], (
        "error_pages.py lists families by prefix"
    )


def test_errors_have_examples():
    listed = {id for id, _, _ in error_pages.read_errors()}
    assert len(listed & set(error_pages.read_examples())) >= 195
