// Mutates a program: changes attributes, arguments, types, kinds, orders, blocks and ops. An executor must
// run or reject the result.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/executor/draft.h"
#include "tests/support/random_network.h"

namespace penstock::fuzz {

using test::Draw;

// Makes one change, which may insert parts of `donor`.
void Mutate(Draft& draft, const Draft& donor, Draw& draw);

// Makes one change to the text of a program: a word, a number, a line.
std::string MutatedText(const std::string& text, Draw& draw);

// An extent or count that is likely to be invalid, such as one too many, or 0.
Dim OddExtent(Draw& draw);

}  // namespace penstock::fuzz
