#include "tests/support/numeric_case.h"

#include <nlohmann/json.hpp>

#include "framework/base/strings.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"

namespace penstock::test {

std::string NumericFolder() { return CorpusOrSelection() + "/open/numeric/"; }

NumericNames AllNumericCases() {
  NumericNames cases;
  for (const std::string& model : FilesEndingIn(NumericFolder(), "")) {
    for (const std::string& name : FilesEndingIn(NumericFolder() + model, ".npz")) {
      if (name != "init" && name != "feeds") cases.emplace_back(model, name);
    }
  }
  return cases;
}

NumericCase ReadNumericCase(const std::string& model, const std::string& optimizer) {
  const std::string folder = StrCat(NumericFolder(), model, "/");
  const auto info = nlohmann::json::parse(BytesOf(folder + "info.json"));
  return {.loss = info["loss"].get<std::string>(),
          .feeds = info["feeds"].get<std::vector<std::string>>(),
          .startup = ProgramOf(StrCat(folder, optimizer, ".startup.pb")),
          .main = ProgramOf(StrCat(folder, optimizer, ".main.pb")),
          .start = ArraysOf(folder + "init.npz"),
          .values = ArraysOf(folder + "feeds.npz"),
          .golden = ArraysOf(StrCat(folder, optimizer, ".npz"))};
}

std::vector<exec::Feed> FeedsOfStep(const NumericCase& c, int step) {
  return FeedsOf(c.values, StrCat("s", step, ":"), c.feeds);
}

}  // namespace penstock::test
