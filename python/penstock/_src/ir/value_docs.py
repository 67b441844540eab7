"""Docstrings of the classes that C++ defines."""

LOD_TENSOR = """A tensor with optional sequences, which is fed, fetched and held by a scope's variables.

`set(array, place)` copies a NumPy array into the tensor; `np.array(tensor)` copies it out; `shape()` returns the shape.
`set_recursive_sequence_lengths(lengths)` and `recursive_sequence_lengths()` set and return the lengths of the
sequences, a list for each level; `set_lod` and `lod` do the same with offsets, [[0, 2, 5]] for lengths [[2, 3]].
`has_valid_recursive_sequence_lengths()` returns whether the sequences cover the rows.

Raises:
    penstock.ProgramError: an array has a type that tensors do not support, or lengths are inconsistent.

Example:
    tensor = fluid.LoDTensor()
    tensor.set(np.ones((5, 2), 'float32'), fluid.CPUPlace())
    tensor.set_recursive_sequence_lengths([[2, 3]])
    assert tensor.shape() == [5, 2] and tensor.lod() == [[0, 2, 5]]
"""

LOD_TENSOR_ARRAY = """A list of tensors, such as a loop writes: `append(tensor)` adds one, `len` and [i] read the list.

Example:
    tensor = fluid.LoDTensor()
    tensor.set(np.ones(2, 'float32'), fluid.CPUPlace())
    array = fluid.LoDTensorArray()
    array.append(tensor)
    assert len(array) == 1
"""

SELECTED_ROWS = """Some rows of a tall tensor, such as a sparse gradient or the rows of a sparse table.

Args:
    rows (list[int]): the row numbers; a number may occur several times.
    height (int): the number of rows of the whole tensor.

`rows()`, `height()` and `get_tensor()` return the parts; `set_rows` and `set_height` replace them; `numel()` counts
the elements of the tensor; `sync_index()` does nothing.

Example:
    rows = fluid.core.SelectedRows([4, 7], 10)
    rows.get_tensor().set(np.ones((2, 3), 'float32'), fluid.CPUPlace())
    assert list(rows.rows()) == [4, 7] and rows.height() == 10
"""

SCOPE = """The variables of programs, by name. A child scope also sees the variables of its parents.

`var(name)` returns a variable, and creates it if it does not exist; `find_var(name)` returns it or None, and also
searches the parents; `new_scope()` creates a child; `local_var_names()` lists the scope's own variables;
`erase(names)` removes variables. `get_tensor()` of a variable returns its LoDTensor.

Example:
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.layers.create_parameter([2, 2], 'float32', name='w')
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    assert np.array(scope.find_var('w').get_tensor()).shape == (2, 2)
"""

PROGRAM_DESC = """The value of a program, which C++ owns; Program.desc is an instance.

`serialize_to_string()` returns the bytes of Fluid's format and `parse(bytes)` reads them; `to_string()` returns the
text form; `copy()` returns an independent value; `block(index)` and `num_blocks()` access the blocks (BlockDesc).
`random_seed` and `plan` (the transpiler's plan as text) are part of the value; `version` counts its changes, and equal
values have the same `content_id`.

Example:
    fluid.layers.relu(fluid.data('x', [2]))
    desc = fluid.default_main_program().desc
    again = fluid.Program.parse_from_string(desc.serialize_to_string()).desc
    assert again.to_string() == desc.to_string()
"""
