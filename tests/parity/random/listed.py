"""The differences between programs built for one machine that DIFFERENCES.md lists (its second table), as code.

Some are removed from both programs before the comparison. If one changes the ops of a program, the programs are
compared only up to that point.
"""

import re

_WRITTEN = re.compile(r"'([^']*)'")


def _written(lines):
    names = set()
    for line in lines:
        if " <- " in line:
            names.update(_WRITTEN.findall(line.split(" <- ", 1)[0]))
    return names


def _without_idle_state(theirs, ours, met):
    """Fluid's lines without the optimizer's state of a parameter that has no gradient: no op reads it."""
    our = {line.split(" ")[1] for line in ours if line.startswith("var ")}
    idle = {line.split(" ")[1] for line in theirs if line.startswith("var ") and "persistable=True" in line} - our
    for line in theirs:
        if idle and " <- " in line:
            idle -= set(_WRITTEN.findall(line.split(" <- ", 1)[1]))
    filled = [f"Out=['{name}'] <- fill_constant(" for name in idle]
    kept = [
        line
        for line in theirs
        if not (line.startswith("var ") and line.split(" ")[1] in idle) and not line.startswith(tuple(filled))
    ]
    if idle:
        met.add("B-unwritten-gradients")
    return kept if idle else theirs


def _is_gradient(name):
    return "@GRAD" in name


def _without_unwritten(theirs, met):
    """Fluid's lines without gradients that no op writes: removed from sums, otherwise replaced by no argument."""
    if not any("_grad(" in line for line in theirs):  # a pserver's gradients come from trainers
        return theirs
    written = _written(theirs)
    declared = {line.split(" ")[1] for line in theirs if line.startswith("var ")}
    unwritten = {name for name in declared if _is_gradient(name) and name not in written}
    read = set()
    for line in theirs:
        if " <- " in line:
            read.update(
                name
                for name in _WRITTEN.findall(line.split(" <- ", 1)[1].split(") {", 1)[0])
                if _is_gradient(name) and name not in written
            )
    unwritten |= read
    if not unwritten:
        return theirs
    made = []
    for line in theirs:
        if line.startswith("var ") and line.split(" ")[1] in unwritten:
            met.add("B-unwritten-gradients")
            continue
        if " <- sum(" in line:
            kept = line
            for name in unwritten:
                kept = kept.replace(f"'{name}', ", "").replace(f", '{name}'", "")
        elif "_grad(" in line:
            kept = _emptied(line, unwritten)
        else:
            kept = line
        if kept != line:
            met.add("B-unwritten-gradients")
        made.append(kept)
    return made


def _emptied(line, unwritten):
    head, tail = line.split(" {", 1)
    for name in unwritten:
        head = head.replace(f"'{name}'", "'@EMPTY@'")
    return f"{head} {{{tail}"


def _alike(line):
    """Removes listed differences from both."""
    if "<- swish(" in line or "<- swish_grad(" in line:
        line = re.sub(r" ?beta=[^ }]*", "", line)
    if line.startswith("var ") and " kind=8 " in line:
        line = re.sub(r"shape=\[[^]]*\]", "shape=", line)
    if "_grad(" in line or "_grad {" in line:
        line = re.sub(r" ([\w@]+)=\['@EMPTY@'(, '@EMPTY@')*\]", "", line)
        line = re.sub(r"\(([\w@]+)=\['@EMPTY@'(, '@EMPTY@')*\] ?", "(", line)
        line = _sorted_arguments(line)
    return line


def _sorted_arguments(line):
    """Arguments without gradient may have another position in ops that run blocks."""
    if "<- while_grad(" not in line and "<- conditional_block_grad(" not in line:
        return line
    return re.sub(
        r"Out@GRAD=\[([^]]*)\]", lambda found: f"Out@GRAD=[{', '.join(sorted(found.group(1).split(', ')))}]", line
    )


def _preout(lines):
    return {
        name
        for line in lines
        if "<- hierarchical_sigmoid(" in line
        for name in re.findall(r"PreOut=\['([^']*)'\]", line)
    }


def _known_there(theirs, ours):
    """Fluid's lines with the numbers of rows that only ours declare."""
    if len(theirs) != len(ours):
        return theirs
    made = []
    for their, our in zip(theirs, ours):
        rows = re.search(r"shape=\[(\d+)", our)
        known = re.sub(r"shape=\[-1", "shape=[" + rows.group(1), their) if rows and their.startswith("var ") else their
        made.append(known if known == our else their)
    return made


def without(theirs, ours, met):
    """Both without the listed differences; adds the ids of the found entries to `met`."""
    if theirs == ours:
        return theirs, ours
    if any("<- swish(" in line for line in theirs):
        met.add("B-swish-beta")
    if any(line.startswith("var ") and " kind=8 " in line for line in theirs):
        met.add("B-extents")
    theirs = _without_idle_state(theirs, ours, met)
    theirs, ours = _without_unwritten(theirs, met), _without_unwritten(ours, set())
    sides = []
    for lines in (theirs, ours):
        hidden = _preout(lines)
        if hidden:
            met.add("B-hsigmoid")
        lines = [
            re.sub(r"shape=\[[^]]*\]", "shape=", line)
            if line.startswith("var ") and line.split(" ")[1] in hidden
            else line
            for line in lines
        ]
        sides.append([_alike(line) for line in lines])
    known = _known_there(*sides)
    if known != sides[0]:
        met.add("B-extents")
        sides[0] = known
    bare = [[re.sub(r" lod=\d", "", line) for line in lines] for lines in sides]
    if sides[0] != sides[1] and bare[0] == bare[1]:
        met.add("B-lod")
    return bare


def _shapes(lines):
    return {
        line.split(" ")[1]: re.search(r"shape=\[([^]]*)\]", line).group(1).split(", ")
        for line in lines
        if line.startswith("var ") and "shape=" in line
    }


def _sizes_parameter(theirs, ours):
    """Whether a parameter has the width of an extent that Fluid leaves at -1 and ours declare."""
    their, our = _shapes(theirs), _shapes(ours)
    alike = [name for name in our if name in their and len(their[name]) == len(our[name]) and their[name] != our[name]]
    known = [name for name in alike if "-1" in their[name][1:] and "-1" not in our[name][1:]]
    return bool(known) and any("-1" not in their[name] and "-1" not in our[name] for name in alike)


def not_compared(theirs, ours):
    """The entries that change the ops of such programs."""
    entries = []
    their_text, our_text = "\n".join(theirs), "\n".join(ours)
    if "weight_norm_" in their_text:
        entries.append("B-weight-norm")
    if our_text.count("graident_clip_@CLIP") > their_text.count("graident_clip_@CLIP"):
        entries.append("B-clip-some")
    if re.search(r"<- lstmp?_grad\([^)]*Cell@GRAD=\['[^@]", our_text):
        entries.append("B-lstm-cell")
    if _sizes_parameter(theirs, ours):
        entries.append("B-extents")
    if "@EMA_STEP_COUNTER@" in our_text and "<- cast(X=['@STEP_COUNTER@'])" in our_text:
        entries.append("B-average-steps")
    if re.search(r"<- hierarchical_sigmoid\(.*is_sparse=True", our_text):
        entries.append("B-hsigmoid")
    if re.search(r"Out=\['[^']*', '.*<- conditional_block\(", their_text):
        entries.append("B-cond-gradients")
    if "is_distributed=True" in their_text and " <- sgd(" in their_text:
        entries.append("B-table-optimizer")
    written = _written(theirs)
    arrays = {line.split(" ")[1] for line in theirs if line.startswith("var ") and " kind=13 " in line}
    zeros = re.findall(r"<- fill_zeros_like\(X=\['([^']*)'\]\)", their_text)
    if arrays.intersection(zeros):
        entries.append("B-unwritten-gradients")
    for line in theirs:
        named = re.search(r"<- recurrent_grad\(.*outputs@GRAD=\[([^]]*)\]", line)
        if named and any(name not in written for name in _WRITTEN.findall(named.group(1))):
            entries.append("B-unwritten-gradients")
    return entries
