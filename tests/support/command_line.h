// The `penstock` binary as a user calls it. The tests' target defines PENSTOCK_BINARY.
//
//   using ShowCommand = test::CommandLine;
//   TEST_F(ShowCommand, ...) { EXPECT_EQ(Run("show " + dir_ / "a.ir"), 0) << err_; }
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "tests/support/corpus.h"
#include "tests/support/temp_dir.h"

namespace penstock::test {

class CommandLine : public testing::Test {
 protected:
  // The exit code, -1 if a signal ended it; what it wrote is in out_ and err_.
  int Run(const std::string& arguments) {
    const std::string command =
        StrCat(PENSTOCK_BINARY, " ", arguments, " >", dir_ / "out", " 2>", dir_ / "err", " </dev/null");
    const int status = std::system(command.c_str());
    out_ = *ReadFile(dir_ / "out");
    err_ = *ReadFile(dir_ / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Exit code 2, this one line, and nothing else.
  void ExpectBadInput(const std::string& arguments, const std::string& message) {
    EXPECT_EQ(Run(arguments), 2) << arguments;
    EXPECT_EQ(out_, "");
    EXPECT_EQ(err_, StrCat("error: ", message, "\n"));
  }
  // The same for a message that is another test's.
  void ExpectBadInput(const std::string& arguments) {
    EXPECT_EQ(Run(arguments), 2) << arguments;
    EXPECT_EQ(out_, "");
    EXPECT_TRUE(StartsWith(err_, "error: ")) << err_;
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }

  // A program of the corpus with its facts, as the arguments of a command.
  static std::string SourceOf(const std::string& program) {
    const std::string folder = StrCat(CorpusOrSelection(), "/open/programs/", program);
    return StrCat(" --main ", Existing(folder + "/main.pb"), " --startup ", Existing(folder + "/startup.pb"),
                  " --facts ", folder, "/program.json");
  }
  // The same and how it is to be distributed.
  static std::string CaseOf(const std::string& program, const std::string& config) {
    return StrCat(SourceOf(program), " --config ", CorpusOrSelection(), "/open/cases/", program, "@", config,
                  "/case.json");
  }

  const TempDir dir_;
  std::string out_, err_;
};

}  // namespace penstock::test
