"""Modules of the front end import each other without cycles, at the top of the file."""

import ast
import pathlib

import penstock

PACKAGE = pathlib.Path(penstock.__file__).parent


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


PATHS = {module_of(path): path for path in (PACKAGE / 'fluid').rglob('*.py')}


def imported(node):
    """Modules of the front end that an import statement names; a package stands for its __init__."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in PATHS]
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith('penstock.fluid'):
        names = ['%s.%s' % (node.module, alias.name) for alias in node.names]
        submodules = [name for name in names if name in PATHS]
        return submodules if len(submodules) == len(names) else submodules + [node.module]
    return []


def heads(module):
    return {name for node in ast.parse(PATHS[module].read_text()).body for name in imported(node)}


def test_imports_are_acyclic():
    done, open_ = set(), []

    def visit(module):
        assert module not in open_, ' -> '.join(open_[open_.index(module):] + [module])
        if module in done:
            return
        open_.append(module)
        for name in sorted(heads(module) - {module}):
            visit(name)
        done.add(open_.pop())

    for module in PATHS:
        visit(module)
    assert 'penstock.fluid.framework' in done and 'penstock.fluid.block' in heads('penstock.fluid.framework')


def test_functions_contain_no_imports():
    hidden = [(module, name) for module, path in PATHS.items() for node in ast.walk(ast.parse(path.read_text()))
              if isinstance(node, ast.FunctionDef) for inner in ast.walk(node) for name in imported(inner)]
    assert hidden == []
