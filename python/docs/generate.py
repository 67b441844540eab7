"""Pages made of the code: the API by name, the commands, the operators, the errors by id."""

import csv
import importlib
import inspect
import os
import pathlib
import pkgutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The first page that has an object documents it; later ones refer to it.
FIRST = ['penstock', 'penstock.fluid.layers', 'penstock.fluid.nets', 'penstock.fluid.optimizer', 'penstock.fluid.io',
         'penstock.fluid.framework', 'penstock.fluid.executor', 'penstock.fluid.transpiler', 'penstock.hvd']
COMMANDS = ['convert', 'show', 'diff', 'transpile', 'check', 'plan', 'memory_optimize', 'release_memory', 'plot', 'top',
            'trace', 'profile']


def public_modules():
    """(name, module) of each module that users import, by name; the most important ones first."""
    import penstock
    names = ['penstock'] + [found.name for found in pkgutil.walk_packages(penstock.__path__, 'penstock.')]
    names = [name for name in names if not any(part.startswith('_') for part in name.split('.'))]
    names.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    for name in names:
        yield name, importlib.import_module(name)


def public_names(module):
    """What a module lists in `__all__`, or defines where it has no such list; of the launcher's parts nothing: its
    interface is the command."""
    if module.__name__.startswith('penstock.distributed.launch.'):
        return []
    if hasattr(module, '__all__'):
        return sorted(module.__all__)
    return sorted(name for name, thing in vars(module).items()
                  if not name.startswith('_') and getattr(thing, '__module__', None) == module.__name__)


def public_classes():
    """The ids of the classes that have an entry of their own."""
    things = (getattr(module, name, None) for _, module in public_modules() for name in public_names(module))
    return {id(thing) for thing in things if inspect.isclass(thing)}


def has_hidden_base(thing, public):
    """Whether a class inherits from a class of ours without an entry, so that its entry must have the members."""
    return any(base.__module__.startswith('penstock.') and not base.__name__.startswith('_') and id(base) not in public
               for base in thing.__mro__[1:] if base.__module__ != 'penstock._penstock')


def _entry(module, name, thing, public):
    """The directive that documents an object."""
    path = '%s.%s' % (module, name)
    if inspect.isclass(thing):
        inherited = '   :inherited-members:\n' if has_hidden_base(thing, public) else ''
        return '.. autoclass:: %s\n   :members:\n%s   :show-inheritance:\n' % (path, inherited)
    return '.. autofunction:: %s\n' % path


def _title(text):
    return '%s\n%s\n\n' % (text, '=' * len(text))


def write_api(folder):
    """A page for each module with public functions and classes, and their index."""
    folder.mkdir()
    documented, pages, public = {}, [], public_classes()
    for module_name, module in public_modules():
        entries, elsewhere = [], []
        for name in public_names(module):
            thing = getattr(module, name, None)
            if not (inspect.isfunction(thing) or inspect.isclass(thing)):
                continue
            if not getattr(thing, '__module__', '').startswith('penstock'):
                continue
            if id(thing) in documented:
                if documented[id(thing)] != module_name:
                    elsewhere.append('* ``%s``: see :doc:`%s`' % (name, documented[id(thing)]))
                continue
            documented[id(thing)] = module_name
            entries.append(_entry(module_name, name, thing, public))
        if not entries and not elsewhere:
            continue
        pages.append(module_name)
        summary = (module.__doc__ or '').strip().split('\n\n')[0].replace('\n', ' ').replace('*', r'\*')
        text = _title(module_name) + (summary + '\n\n' if summary else '')
        text += '\n'.join(entries) + ('\n' + '\n'.join(elsewhere) + '\n' if elsewhere else '')
        (folder / (module_name + '.rst')).write_text(text)
    (folder / 'index.rst').write_text(_title('The API by name') + '.. toctree::\n   :maxdepth: 1\n\n' +
                                      ''.join('   %s\n' % page for page in pages))
    return documented


def _help(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env=dict(os.environ, COLUMNS='100'))
    return done.stdout or done.stderr


def write_commands(path):
    """What each command says of itself."""
    penstock = pathlib.Path(sys.executable).with_name('penstock')
    parts = ['# The command line\n', 'Exit codes are listed in the README, section "Exit codes".\n']
    for command in COMMANDS:
        parts.append('## penstock %s\n\n```text\n%s```\n' % (command, _help(penstock, command, '--help')))
    launch = _help(sys.executable, '-m', 'penstock.distributed.launch', '--help')
    parts.append('## python -m penstock.distributed.launch\n\n```text\n%s```\n' % launch)
    path.write_text('\n'.join(parts))


def write_operators(path):
    """operators/OPS.md, without what in it is for its readers in the tree."""
    path.write_text((ROOT / 'operators' / 'OPS.md').read_text())


def read_errors():
    """[(id, meaning, remedy)] of errors.tsv, sorted."""
    with open(HERE / 'errors.tsv', newline='') as file:
        return [tuple(row) for row in csv.reader(file, delimiter='\t', quoting=csv.QUOTE_NONE)]


def write_errors(path):
    """The errors by id."""
    parts = ['# Errors by id\n',
             'Every error of Penstock has a stable id, which stands in brackets behind its first line and is '
             '`error.id` in Python. An error that a command prints ends it with exit code 2, or with 1 if the answer '
             'is no.\n']
    for id, meaning, remedy in read_errors():
        parts.append('## %s\n\n%s\n\n*What to do:* %s\n' % (id, meaning, remedy))
    path.write_text('\n'.join(parts))
