// Runs the `penstock` binary as a user does. The target of the test defines PENSTOCK_BINARY.
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
  // Returns the exit code, or -1 if a signal ended the process. out_ and err_ are its outputs.
  int Run(const std::string& arguments) {
    const std::string command =
        StrCat(PENSTOCK_BINARY, " ", arguments, " >", dir_ / "out", " 2>", dir_ / "err", " </dev/null");
    const int status = std::system(command.c_str());
    out_ = *ReadFile(dir_ / "out");
    err_ = *ReadFile(dir_ / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Expects exit code 2, this one line of error, and no other output.
  void ExpectBadInput(const std::string& arguments, const std::string& message) {
    EXPECT_EQ(Run(arguments), 2) << arguments;
    EXPECT_EQ(out_, "");
    EXPECT_EQ(err_, StrCat("error: ", message, "\n"));
  }
  // Expects exit code 2 and one line of error, whose text another test checks.
  void ExpectBadInput(const std::string& arguments) {
    EXPECT_EQ(Run(arguments), 2) << arguments;
    EXPECT_EQ(out_, "");
    EXPECT_TRUE(StartsWith(err_, "error: ")) << err_;
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
  }

  // The arguments of a command for a program of the corpus with its facts.
  static std::string SourceOf(const std::string& program) {
    const std::string folder = StrCat(CorpusOrSelection(), "/open/programs/", program);
    return StrCat(" --main ", Existing(folder + "/main.pb"), " --startup ", Existing(folder + "/startup.pb"),
                  " --facts ", folder, "/program.json");
  }
  // The arguments for a program of the corpus and one of its cases.
  static std::string CaseOf(const std::string& program, const std::string& config) {
    return StrCat(SourceOf(program), " --config ", CorpusOrSelection(), "/open/cases/", program, "@", config,
                  "/case.json");
  }

  const TempDir dir_;
  std::string out_, err_;
};

}  // namespace penstock::test
