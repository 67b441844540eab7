// Where the programs and numbers made by Fluid 1.8.5 lie: the corpus beside the checkout, or the small
// selection in the tree.
#pragma once

#include <string>
#include <vector>

namespace penstock::test {

// Where the sources are that the tests were built from.
std::string SourceFolder();
// The folder of the whole corpus, "" in a checkout that has none beside it. PENSTOCK_CORPUS names another;
// empty, it makes a test do with the selection. Where one is named and not there, or CI is "true" and there
// is none, the process fails.
std::string CorpusFolder();
// The selection in the tree, tests/parity/data: the same layout below it.
std::string SelectionFolder();
// The corpus if it is there, else the selection.
std::string CorpusOrSelection();
// The path, or what stands under it with ".gz".
std::string Existing(const std::string& path);
// Names of the files of a folder that end in `suffix`, without it, sorted; none if there is no such folder.
std::vector<std::string> FilesEndingIn(const std::string& folder, const std::string& suffix);
// The bytes of a file; a missing one fails the process: a test asks only for what it has listed.
std::string BytesOf(const std::string& path);

}  // namespace penstock::test
