#include "framework/runtime/process_id.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/base/strings.h"

namespace penstock {
namespace {

std::string LineFrom(int end) {
  std::string text;
  char byte = 0;
  while (read(end, &byte, 1) == 1 && byte != '\n') text += byte;
  return text;
}

TEST(ProcessId, ThisProcessRuns) {
  EXPECT_EQ(StateOfProcess(DescribeThisProcess()), ProcessState::kRuns) << DescribeThisProcess();
}

TEST(ProcessId, AProcessHasEndedBeforeItsParentAsks) {
  int told[2], ends[2];
  ASSERT_EQ(pipe(told), 0);
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    const std::string line = DescribeThisProcess() + "\n";
    (void)!write(told[1], line.data(), line.size());
    char byte = 0;
    (void)!read(ends[0], &byte, 1);  // until the parent closes its end
    _exit(0);
  }
  const std::string described = LineFrom(told[0]);
  EXPECT_NE(described, DescribeThisProcess());
  EXPECT_EQ(StateOfProcess(described), ProcessState::kRuns);
  close(ends[1]);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(StateOfProcess(described), ProcessState::kEnded) << "nobody has read its exit code yet";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(StateOfProcess(described), ProcessState::kEnded);
}

// A process may end between the opening and the reading of its entry in /proc; both are tried at once here.
TEST(ProcessId, AProcessMayEndWhileItIsLookedAt) {
  struct sigaction before = {}, reap = {};
  reap.sa_handler = SIG_IGN;  // ended children leave /proc at once
  ASSERT_EQ(sigaction(SIGCHLD, &reap, &before), 0);
  for (int i = 0; i < 300; ++i) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
      const std::string line = DescribeThisProcess() + "\n";
      (void)!write(told[1], line.data(), line.size());
      _exit(0);
    }
    const std::string described = LineFrom(told[0]);
    close(told[0]);
    close(told[1]);
    while (StateOfProcess(described) != ProcessState::kEnded) {
    }
  }
  ASSERT_EQ(sigaction(SIGCHLD, &before, nullptr), 0);
}

TEST(ProcessId, AnotherProcessWithTheNumberIsAnotherOne) {
  std::string described = DescribeThisProcess();
  described.back() = described.back() == '1' ? '2' : '1';  // its start time
  EXPECT_EQ(StateOfProcess(described), ProcessState::kEnded);
}

TEST(ProcessId, OfOtherHostsAndOddTextsNothingIsKnown) {
  const std::string here = DescribeThisProcess();
  for (const std::string& odd :
       {std::string(), std::string("x"), StrCat("other", here), StrCat(here, " 1"),
        here.substr(0, here.find(' ')) + " -1 5", here.substr(0, here.find(' ')) + " 1x 5",
        here.substr(0, here.find(' ')) + " 99999999999999999999 5"})
    EXPECT_EQ(StateOfProcess(odd), ProcessState::kUnknown) << odd;
}

}  // namespace
}  // namespace penstock
