// Finds the programs and numbers made by Fluid 1.8.5: the corpus next to the checkout, or the small selection
// in the tree.
#pragma once

#include <string>
#include <vector>

namespace penstock::test {

// The root of the source tree from which the tests were built.
std::string SourceFolder();
// The folder of the whole corpus: PENSTOCK_CORPUS, by default ../shared/corpus next to the checkout. Returns
// "" if PENSTOCK_CORPUS is empty, or if it is unset and there is no ../shared. Ends the process if the folder
// is missing otherwise.
std::string CorpusFolder();
// The selection in the tree, tests/parity/data, which has the layout of the corpus.
std::string SelectionFolder();
// The corpus if it exists, otherwise the selection.
std::string CorpusOrSelection();
// `path` if it exists, otherwise `path` + ".gz".
std::string Existing(const std::string& path);
// The sorted names of the files in `folder` that end in `suffix`, without the suffix; empty if the folder
// does not exist.
std::vector<std::string> FilesEndingIn(const std::string& folder, const std::string& suffix);
// The bytes of a file. Ends the process if it is missing, because tests read only files that they have
// listed.
std::string BytesOf(const std::string& path);

}  // namespace penstock::test
