// Processes of one host communicate by Unix sockets and anonymous shared memory; a killed process leaves
// nothing behind.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/dist/job.h"
#include "tests/support/linear_sgd.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The targets of a process's descriptors, such as "socket:[4711]" and "/memfd:penstock (deleted)".
std::multiset<std::string> DescriptorsOf(const Process& process) {
  std::multiset<std::string> links;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(StrCat("/proc/", process.pid(), "/fd"), error)) {
    const fs::path to = fs::read_symlink(entry.path(), error);
    if (!error) links.insert(to.string());
  }
  return links;
}

// The number of the process's mappings of Penstock's shared memory: its own, and those lent by others.
std::size_t MappedBy(const Process& process) {
  std::ifstream maps(StrCat("/proc/", process.pid(), "/maps"));
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("/memfd:penstock (deleted)")) ++count;
  }
  return count;
}

// The abstract names of Penstock's sockets that the process owns.
std::set<std::string> UnixNamesOf(const Process& process) {
  const std::multiset<std::string> links = DescriptorsOf(process);
  std::set<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string word, inode, name;
    for (int i = 0; i < 7; ++i) words >> inode;
    words >> name;
    if (name.starts_with("@penstock/") && links.contains(StrCat("socket:[", inode, "]"))) names.insert(name);
  }
  return names;
}

bool NameIsThere(const std::string& name) {
  std::ifstream table("/proc/net/unix");
  std::stringstream text;
  text << table.rdbuf();
  return text.str().find(name) != std::string::npos;
}

std::set<std::string> FilesOf(const char* folder) {
  std::set<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().find("penstock") != std::string::npos)
      files.insert(entry.path().string());
  }
  return files;
}

// Waits until the condition holds; false if the process ends or 30 s pass first.
template <typename Condition>
bool Becomes(Process& process, Condition condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) {
    if (process.Wait(milliseconds(10)).has_value()) break;
  }
  return condition();
}

std::unique_ptr<Job> LongJob() {
  auto job = std::make_unique<Job>(Roles("trainer"), Roles("pserver"));
  for (int i = 0; i < 2; ++i) {
    job->trainer(i).feeds = {{{"x", Constant({4, 13}, 0.01f)}, {"y", Constant({4, 1}, 0.02f)}}};
    job->trainer(i).flags = {"--steps=1000000"};
  }
  return job;
}

TEST(DistLocal, AJobThatIsKilledLeavesNothingBehind) {
  const std::set<std::string> before = FilesOf("/dev/shm");
  const auto job = LongJob();
  std::vector<Process*> processes = {&job->StartPserver(0), &job->StartPserver(1), &job->StartTrainer(0),
                                     &job->StartTrainer(1)};
  // Each server shares memory with each trainer, both ways.
  for (int i = 0; i < 2; ++i) {
    const auto mapped = [&] { return MappedBy(*processes[i]); };
    ASSERT_TRUE(Becomes(*processes[i], [&] { return mapped() == 3; })) << mapped() << job->Logs();
    EXPECT_EQ(DescriptorsOf(*processes[i]).count("/memfd:penstock (deleted)"), 1u);
  }
  std::set<std::string> names;
  for (int i = 0; i < 2; ++i) names.merge(UnixNamesOf(*processes[i]));
  EXPECT_EQ(names.size(), 2u);
  for (Process* process : processes) {
    for (const std::string& link : DescriptorsOf(*process))
      EXPECT_FALSE(link.starts_with("/dev/shm")) << link;
  }
  // Stops all processes first, because one that sees another die would end by itself before its own signal.
  for (Process* process : processes) process->Signal(SIGSTOP);
  for (Process* process : processes) process->Signal(SIGKILL);
  for (Process* process : processes) EXPECT_EQ(process->Wait(seconds(60)), -SIGKILL);
  for (const std::string& name : names) EXPECT_FALSE(NameIsThere(name)) << name;
  EXPECT_EQ(FilesOf("/dev/shm"), before);
}

TEST(DistLocal, TheLogNamesTheTransportOfEachServer) {
  const auto job = LongJob();
  for (int i = 0; i < 2; ++i) job->StartPserver(i);
  Process& near = job->StartTrainer(0);
  Process& far = job->StartTrainer(1, {"--transport=tcp"});
  const auto says = [&](Process& process, const std::string& text) {
    EXPECT_TRUE(Becomes(process, [&] { return process.Log().find(text) != std::string::npos; }))
        << process.Log();
  };
  for (int i = 0; i < 2; ++i) {
    says(near, StrCat("pserver ", job->address(i), ": connected by a unix socket and shared memory"));
    says(far, StrCat("pserver ", job->address(i), ": connected by TCP"));
  }
}

TEST(DistLocal, AnUnknownTransportIsAnError) {
  const auto job = LongJob();
  Process& trainer = job->StartTrainer(0, {"--transport=carrier pigeon"});
  EXPECT_EQ(trainer.Wait(seconds(60)), 1);
  EXPECT_NE(trainer.Log().find("it may be auto or tcp"), std::string::npos) << trainer.Log();
}

}  // namespace
}  // namespace penstock::test
