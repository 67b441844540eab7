// Lists edits of a set that check need not report, each with the reason.
#pragma once

#include <string>

namespace penstock::test {

// `what`: the role whose program changes and the name of the Mutation; starts with "every " if all programs
// of the role change alike. `set`: the case of the corpus, and whose programs these are. `with_source`: asks
// for edits that check reports only if the source programs are given.
bool CannotMatter(const std::string& set, const std::string& what, bool with_source);

}  // namespace penstock::test
