// A process that saves and is killed before or after any of its system calls, as a debugger does it (ptrace).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/writer.h"

namespace penstock::test {
namespace {

using checkpoint::Found;
using checkpoint::Value;
using checkpoint::Writer;

// In memory: a process that is killed loses nothing that it has written, so no disk has to be awaited.
class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::exists("/dev/shm") ? "/dev/shm" : testing::TempDir();
    path += "/killed-saves-XXXXXX";
    PENSTOCK_CHECK(::mkdtemp(path.data()) != nullptr, "a temporary folder");
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Row `id` has the step in which it changed last; each step changes row 0 and adds a row.
SelectedRows RowsAt(std::uint64_t step, bool changes) {
  SelectedRows rows{.rows = {}, .height = 1000, .value = {}};
  for (std::int64_t id = 0; id < static_cast<std::int64_t>(100 + step); ++id) {
    if (!changes || id == 0 || id >= static_cast<std::int64_t>(95 + step)) rows.rows.push_back(id);
  }
  rows.value = Tensor(DType::kFp32, {static_cast<Dim>(rows.rows.size()), 1});
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    rows.value.Data<float>()[i] = static_cast<float>(rows.rows[i] == 0 ? step : 7);
  return rows;
}

Status Save(Writer& writer, std::uint64_t step, const char* run) {
  const bool changes = writer.TakesChanges();
  std::vector<Value> values(2);
  values[0].entry = {
      .name = "t", .of = "t", .row_begin = {}, .rows = true, .type = StrCat("f32[", 100 + step, ", 1]")};
  values[0].saved_as = changes ? Value::Rows::kChanges : Value::Rows::kBase;
  values[0].value.As<SelectedRows>() = RowsAt(step, changes);
  values[1].entry = {.name = "w", .of = "w", .row_begin = 0, .type = "f32[1]"};
  values[1].value.As<Tensor>() = Tensor(DType::kFp32, {1});
  values[1].value.As<Tensor>().Data<float>()[0] = static_cast<float>(step);
  return writer.Write({.step = step, .server = 0, .servers = 1, .run = run, .values = {}}, values);
}

// Saves steps 5 and 10, stops, and saves step 15.
[[noreturn]] void SaveInChild(const std::string& folder) {
  Writer writer(SystemDisk(), {.folder = folder, .keep = 1});
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
  for (const std::uint64_t step : {5U, 10U}) {
    if (!Save(writer, step, "job.0").ok()) ::_exit(98);
  }
  ::raise(SIGSTOP);
  ::_exit(Save(writer, 15, "job.0").ok() ? 0 : 97);
}

enum class End { kKilled, kExited, kNotTraced };

// Kills the child at this stop; each system call has two, before and after it.
End SaveAndKillAt(int stop, const std::string& folder) {
  const pid_t child = ::fork();
  if (child == 0) SaveInChild(folder);
  int status = 0;
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP) {
    ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  }
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 99);
    return End::kNotTraced;
  }
  for (int at = 0; at < stop; ++at) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      return End::kExited;
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return End::kKilled;
}

void ExpectHasStep(const Found& found) {
  ASSERT_TRUE(found.whole()) << found.lacks;
  ASSERT_TRUE(VerifyCheckpoint(SystemDisk(), found).ok());
  const auto values = ReadPart(SystemDisk(), found.folder, found.parts[0]);
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  const SelectedRows &rows = *(*values)[0].value.If<SelectedRows>(), expected = RowsAt(found.step, false);
  EXPECT_EQ(rows.rows, expected.rows);
  EXPECT_EQ(rows.value.Data<float>()[0], static_cast<float>(found.step));
  EXPECT_EQ((*values)[1].value.If<Tensor>()->Data<float>()[0], static_cast<float>(found.step));
}

TEST(KilledSave, AtAnySystemCallThePreviousOrTheNewCheckpointIsWhole) {
  int stop = 0, previous = 0, next = 0;
  for (End end = End::kKilled; end == End::kKilled; ++stop) {
    const Folder folder;
    end = SaveAndKillAt(stop, folder.path());
    if (end == End::kNotTraced) GTEST_SKIP() << "this process may not trace another";
    const auto newest = checkpoint::NewestWhole(SystemDisk(), folder.path());
    ASSERT_TRUE(newest.ok()) << stop << ": " << newest.status().ToString();
    ASSERT_TRUE(newest->has_value()) << stop;
    ASSERT_TRUE(**newest == 10 || **newest == 15) << stop << ": " << **newest;
    ++(**newest == 10 ? previous : next);
    const std::vector<Found> all = checkpoint::FindCheckpoints(SystemDisk(), folder.path()).value();
    ExpectHasStep(*std::ranges::find(all, **newest, &Found::step));
    // The job goes on.
    Writer writer(SystemDisk(), {.folder = folder.path(), .keep = 1});
    ASSERT_TRUE(writer.RemoveAfter(**newest).ok());
    for (const std::uint64_t step : {15U, 20U}) {
      ASSERT_TRUE(Save(writer, step, "job.1").ok()) << stop;
      ExpectHasStep(checkpoint::FindCheckpoints(SystemDisk(), folder.path()).value().back());
    }
  }
  EXPECT_GT(previous, 20);
  EXPECT_GT(next, 4) << "the removal of the old one follows";
}

}  // namespace
}  // namespace penstock::test
