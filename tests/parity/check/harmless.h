// Edits of a set that check need not find, each with the reason.
#pragma once

#include <string>

namespace penstock::test {

// `what` is an edit as a Mutation calls it, behind the role whose program it changes; "every " stands before
// it if all programs of the role are changed alike. `set` is the case of the corpus, and whose programs these
// are. `with_source`: it is found, but only if the source is given.
bool CannotMatter(const std::string& set, const std::string& what, bool with_source);

}  // namespace penstock::test
