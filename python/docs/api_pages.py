"""The pages of the API: the layers by task, the other modules by subject, and all module paths."""

import inspect

import generate
import tasks

LAYERS = "penstock.fluid.layers"
OWN_PAGE = 5  # entries from which a module has a page of its own


def _title(text):
    return f"{text}\n{'=' * len(text)}\n\n"


def _short(module_name):
    """The name of a module as a title, which fits into the sidebar."""
    return module_name.removeprefix("penstock.")


def _toctree(pages):
    return ".. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {page}\n" for page in pages)


def _summary(module):
    text = (module.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
    return text.replace("*", r"\*") + "\n\n" if text else ""


def _entry(module, name, thing, public):
    """The directive that documents an object."""
    path = f"{module}.{name}"
    if inspect.isclass(thing):
        inherited = "   :inherited-members:\n" if generate.has_hidden_base(thing, public) else ""
        bases = "   :show-inheritance:\n" if thing.__bases__ != (object,) else ""
        return f".. autoclass:: {path}\n   :members:\n{inherited}{bases}"
    return f".. autofunction:: {path}\n"


def _documented(module_name, module):
    """(name, object) of what a module has of ours."""
    for name in generate.public_names(module):
        thing = getattr(module, name, None)
        if (inspect.isfunction(thing) or inspect.isclass(thing)) and getattr(thing, "__module__", "").startswith(
            "penstock"
        ):
            yield name, thing


def read_api():
    """Returns {module: [(name, object) that it documents]} and {module: [(name, where it is documented)]}."""
    own, elsewhere, path_of, modules = {}, {}, {}, {}
    for module_name, module in generate.public_modules():
        modules[module_name] = module
        for name, thing in _documented(module_name, module):
            if id(thing) not in path_of:
                path_of[id(thing)] = f"{module_name}.{name}"
                own.setdefault(module_name, []).append((name, thing))
            elif path_of[id(thing)].rpartition(".")[0] != module_name:
                elsewhere.setdefault(module_name, []).append((name, path_of[id(thing)]))
    return modules, own, elsewhere


def _write_layers(folder, entries, public):
    """A page for each task. Names that no task lists have a page too, so that no layer is lost."""
    folder.mkdir(parents=True)
    things, listed, pages = dict(entries), set(), []
    rows = [*tasks.LAYERS]
    listed.update(*(names.split() for _, _, _, names in rows))
    rest = " ".join(sorted(set(things) - listed))
    if rest:
        rows.append(("other", "Other layers", "Layers without a task.", rest))
    for slug, title, purpose, names in rows:
        text = f"{_title(title)}{purpose} Module: ``{LAYERS}``.\n\n"
        text += "\n".join(_entry(LAYERS, name, things[name], public) for name in names.split() if name in things)
        (folder / f"{slug}.rst").write_text(text)
        pages.append(slug)
    (folder / "index.rst").write_text(
        _title("Layers by task") + "A layer adds ops to the current program and returns the variables that they "
        f"compute. All are functions and classes of ``{LAYERS}``.\n\n" + _toctree(pages)
    )


def _write_subject(folder, title, purpose, modules, own, public):
    """The page of a subject: small modules one below the other, a large module on a page of its own."""
    folder.mkdir()
    parts, pages = [], []
    for name, module in modules:
        entries = own[name]
        body = "\n".join(_entry(name, entry, thing, public) for entry, thing in entries)
        if len(entries) >= OWN_PAGE:
            (folder / f"{name}.rst").write_text(_title(_short(name)) + _summary(module) + body)
            pages.append(name)
        else:
            title_of_part = _short(name)
            parts.append(f"{title_of_part}\n{'-' * len(title_of_part)}\n\n{_summary(module)}{body}")
    text = _title(title) + purpose + "\n\n" + (_toctree(pages) + "\n" if pages else "") + "\n".join(parts)
    (folder / "index.rst").write_text(text)


def _write_paths(path, elsewhere):
    """A table of the module paths under which scripts of Fluid find names that another module documents."""
    text = (
        _title("Names by module path")
        + "Fluid has many names under several module paths. Each path below works; the link leads to the entry.\n\n"
    )
    for module, names in elsewhere.items():
        text += f"{module}\n{'-' * len(module)}\n\n"
        text += ", ".join(f":py:obj:`{name} <{where}>`" for name, where in names) + "\n\n"
    path.write_text(text)


def write_api(folder):
    """Writes the pages of the API, and their index."""
    folder.mkdir(parents=True)
    public = generate.public_classes()
    modules, own, elsewhere = read_api()
    _write_layers(folder / "layers", own.pop(LAYERS), public)
    pages = ["layers/index"]
    for slug, title, purpose, _ in tasks.MODULES:
        members = [(name, modules[name]) for name in own if tasks.page_of_module(name) == slug]
        if members:
            _write_subject(folder / slug, title, purpose, members, own, public)
            pages.append(f"{slug}/index")
    _write_paths(folder / "paths.rst", elsewhere)
    (folder / "index.rst").write_text(
        _title("Python API") + "By task; each entry states arguments, result and errors, and has an example that a "
        "test runs.\n\n" + _toctree([*pages, "paths"])
    )
