// The attribute names of communication ops occur only where the framework reads them, where passes write
// them, and in the ops' own declarations.
#include "framework/roles/attr_names.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "framework/base/strings.h"

namespace penstock::roles {
namespace {

namespace fs = std::filesystem;

// All attribute names except words with other meanings: `endpoint` and `trainer_id` of collective ops,
// `sections` of split, `half_async` and `dc_asgd` as names of modes.
constexpr std::string_view kOurs[] = {attr::kEpmap,
                                      attr::kEndpoints,
                                      attr::kHeightSections,
                                      attr::kSendVarnames,
                                      attr::kRecvVarnames,
                                      attr::kVarnames,
                                      attr::kTableNames,
                                      attr::kUseSendHandler,
                                      attr::kMergeAdd,
                                      attr::kWithBarrier,
                                      attr::kDoNotRun,
                                      attr::kRemotePrefetch,
                                      attr::kLookupVersion,
                                      attr::kPserverId,
                                      attr::kFanin,
                                      attr::kDistributedMode,
                                      attr::kOptimizeBlocks,
                                      attr::kGradToBlockId,
                                      attr::kSparseGradToParam,
                                      attr::kPrefetchBlocks,
                                      attr::kLrBlock,
                                      attr::kSaveBlock,
                                      attr::kStartValues,
                                      attr::kThreads[0],
                                      attr::kThreads[1],
                                      attr::kThreads[2],
                                      attr::kFirstPlace};

// In an op's own file: its declaration, or its shape inference.
bool IsSchema(const fs::path& file, const std::string& line, std::string_view name) {
  if (file.string().find("operators/") == std::string::npos) return false;
  const std::regex schema(StrCat("(\\.(Required|Implicit)?Attr\\(|^ +|\\bc\\.Attr<[^(]*>\\()\"", name, "\""));
  return std::regex_search(line, schema);
}

TEST(AttrNames, NoLiteralRepeatsAnAttributeName) {
  ASSERT_TRUE(fs::exists("framework/roles/attr_names.h")) << "the test runs at the root of the sources";
  std::vector<std::string> found;
  int files = 0;
  for (const char* folder : {"framework", "operators", "transpiler", "executor"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      const std::string ending = entry.path().extension().string();
      if (ending != ".cc" && ending != ".h" && ending != ".cu") continue;
      if (StartsWith(path, "framework/roles/") || StartsWith(path, "transpiler/passes/")) continue;
      ++files;
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number) {
        if (line.find('"') == std::string::npos) continue;
        for (const std::string_view name : kOurs) {
          const bool spelled = line.find(StrCat('"', name, '"')) != std::string::npos;
          if (spelled && !IsSchema(entry.path(), line, name))
            found.push_back(StrCat(path, ":", number, ": ", name));
        }
      }
    }
  }
  EXPECT_GT(files, 300);
  EXPECT_TRUE(found.empty()) << Join(found, "\n");
}

}  // namespace
}  // namespace penstock::roles
