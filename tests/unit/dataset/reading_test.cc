// Threads that read files through pipe commands: their results, their failures, and that they always end.
#include "executor/dataset/reading.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <future>
#include <latch>
#include <optional>
#include <string>
#include <vector>

#include "executor/dataset/line_source.h"
#include "tests/support/temp_dir.h"

namespace penstock::dataset {
namespace {

const Format kFormat = {.slots = {{.name = "words"}}};

class ReadingTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = (dir_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }

  const test::TempDir dir_;
};

using Lists = std::vector<std::vector<std::int64_t>>;

// The batches of a queue up to its end or an error.
Lists Drain(BatchQueue& queue, Status* error = nullptr) {
  Lists lists;
  while (true) {
    Result<std::optional<Batch>> batch = queue.Pop();
    if (!batch.ok() && error != nullptr) *error = batch.status();
    EXPECT_TRUE(batch.ok() || error != nullptr) << batch.status().ToString();
    if (!batch.ok() || !batch->has_value()) return lists;
    const auto values = (**batch).front().Span<std::int64_t>();
    lists.emplace_back(values.begin(), values.end());
  }
}

TEST_F(ReadingTest, BatchesSpanFiles) {
  const std::vector<std::string> files = {Write("a", "1 1\n1 2\n1 3\n"), Write("b", ""),
                                          Write("c", "1 4\n1 5")};
  const auto reading = Reading::OfFiles(kFormat, {files}, {.threads = 1, .batch_size = 2});
  EXPECT_EQ(Drain(*reading->queues()[0]), (Lists{{1, 2}, {3, 4}, {5}}));
}

TEST_F(ReadingTest, FilesAreDividedAmongThreads) {
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) files.push_back(Write(StrCat("f", i), StrCat("1 ", i, "\n")));
  const auto reading = Reading::OfFiles(kFormat, {files}, {.threads = 2, .batch_size = 2});
  EXPECT_EQ(Drain(*reading->queues()[0]), (Lists{{0, 2}, {4}}));
  EXPECT_EQ(Drain(*reading->queues()[1]), (Lists{{1, 3}}));
}

TEST_F(ReadingTest, PipeCommandsReceiveTheFile) {
  const std::string file = Write("a", "1\n2\n3\n");
  const auto reading =
      Reading::OfFiles(kFormat, {{file}, "sed 's/^/1 /' | head -n 2"}, {.threads = 1, .batch_size = 9});
  EXPECT_EQ(Drain(*reading->queues()[0]), (Lists{{1, 2}}));
}

TEST_F(ReadingTest, RecordsInMemoryAreShared) {
  Records records;
  PipeCommands commands;
  const std::vector<std::string> files = {Write("a", "1 1\n1 2\n"), Write("b", "1 3\n1 4\n1 5\n")};
  ASSERT_TRUE(Load(kFormat, {files}, 4, commands, records).ok());
  const auto reading = Reading::OfRecords(kFormat, records, {.threads = 2, .batch_size = 2});
  EXPECT_EQ(Drain(*reading->queues()[0]), (Lists{{1, 2}}));
  EXPECT_EQ(Drain(*reading->queues()[1]), (Lists{{3, 4}, {5}}));
}

TEST_F(ReadingTest, ABadLineIsReportedAfterEarlierBatches) {
  const std::string file = Write("a", "1 1\n1 2\n1 x\n1 4\n");
  const auto reading = Reading::OfFiles(kFormat, {{file}}, {.threads = 1, .batch_size = 1});
  Status error;
  EXPECT_EQ(Drain(*reading->queues()[0], &error), (Lists{{1}, {2}}));
  EXPECT_EQ(error.ToString(),
            StrCat("dataset: ", file, ", line 3: slot words: \"x\" is no integer of 64 bits   ",
                   "[E-dataset-number]"));
}

TEST_F(ReadingTest, AFailedCommandIsReportedWithItsFile) {
  const std::string file = Write("a", "1 1\n");
  const auto reading = Reading::OfFiles(kFormat, {{file}, "cat; exit 3"}, {.threads = 1, .batch_size = 1});
  Status error;
  EXPECT_EQ(Drain(*reading->queues()[0], &error), (Lists{{1}}));
  EXPECT_EQ(error.ToString(),
            StrCat("dataset: ", file,
                   ": the pipe command \"cat; exit 3\" ended with exit code 3 after 1 lines; what it ",
                   "said stands in this process's errors   [E-dataset-command]"));
}

TEST_F(ReadingTest, ABadLineOfACommandIsReported) {
  const std::string file = Write("a", "1 1\n");
  Records records;
  PipeCommands commands;
  const Status status = Load(kFormat, {{file}, "echo 2 5"}, 1, commands, records);
  EXPECT_EQ(status.ToString(),
            StrCat("dataset: ", file, ", line 1 of what \"echo 2 5\" wrote: slot words: its count is 2, ",
                   "but the line ends after 1 numbers   [E-dataset-short]"));
  EXPECT_EQ(records.size(), 0u);
}

TEST_F(ReadingTest, UnreadableFilesAreReported) {
  Records records;
  PipeCommands commands;
  EXPECT_EQ(Load(kFormat, {{"/no/such"}}, 1, commands, records).ToString(),
            "dataset: /no/such cannot be read: No such file or directory   [E-dataset-file]");
  EXPECT_EQ(Load(kFormat, {{"/tmp"}, "wc"}, 1, commands, records).ToString(),
            "dataset: /tmp cannot be read: it is a folder   [E-dataset-file]");
}

TEST_F(ReadingTest, EndsWhileACommandIsSilent) {
  const std::string file = Write("a", "");
  auto reading =
      Reading::OfFiles(kFormat, {{file, file}, "exec tail -f /dev/null"}, {.threads = 2, .batch_size = 1});
  reading.reset();
  Records records;
  PipeCommands commands;
  std::future<Status> loaded = std::async(std::launch::async, [&] {
    return Load(kFormat, {{file}, "(tail -f /dev/null)"}, 1, commands, records);
  });
  commands.Stop();
  EXPECT_EQ(loaded.get().id(), "E-dataset-stopped");
}

TEST_F(ReadingTest, EndsWhileBatchesAreNotTaken) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1 1\n";
  const auto reading = Reading::OfFiles(kFormat, {{Write("a", text)}, "cat -"},
                                        {.threads = 1, .batch_size = 1, .capacity = 1});
  ASSERT_TRUE(reading->queues()[0]->Pop().ok());
  reading->Stop();
  EXPECT_EQ(reading->queues()[0]->Pop().status().id(), "E-read-not-started");
}

TEST_F(ReadingTest, SeveralThreadsMayStopIt) {
  const std::string file = Write("a", "1 1\n1 2\n1 3\n");
  for (int i = 0; i < 200; ++i) {
    const auto reading = Reading::OfFiles(kFormat, {{file, file}, "exec tail -f"},
                                          {.threads = 2, .batch_size = 1, .capacity = 1});
    std::latch both(2);
    const auto stop = [&] {
      both.arrive_and_wait();
      reading->Stop();
    };
    std::future<void> other = std::async(std::launch::async, stop);
    stop();
    other.get();
    EXPECT_EQ(reading->queues()[1]->Pop().status().id(), "E-read-not-started");
  }
}

TEST_F(ReadingTest, DescriptorExhaustionIsAnError) {
  const std::string file = Write("a", "1 1\n");
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  PipeCommands commands;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto source = LineSource::Open(file, "cat", commands);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().message(),
            "dataset: " + file + " cannot be read: the process has no file descriptor left");
}

}  // namespace
}  // namespace penstock::dataset
