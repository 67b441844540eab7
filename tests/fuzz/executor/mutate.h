// Changes to a program that leave something like a program: other attributes, arguments, types, kinds,
// orders, blocks, ops. Whatever comes out, an executor must run it or refuse it.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/executor/draft.h"
#include "tests/support/random_network.h"

namespace penstock::fuzz {

using test::Draw;

// Makes one change; pieces of `donor` may come in.
void Mutate(Draft& draft, const Draft& donor, Draw& draw);

// Makes one change to the text of a program: a word, a number, a line.
std::string MutatedText(const std::string& text, Draw& draw);

// Extents and counts that are likely to be one too many, or none at all.
Dim OddExtent(Draw& draw);

}  // namespace penstock::fuzz
