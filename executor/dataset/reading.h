// Makes batches from files, or from records in memory, on threads of its own.
//
//   auto reading = Reading::OfFiles(format, {files, "python gen.py"}, {.threads = 2, .batch_size = 32});
//   while (...) PENSTOCK_ASSIGN_OR_RETURN(std::optional<Batch> batch, reading->queue(0)->Pop());
//
// Thread t reads files t, t + threads, ... into its own queue, or the t-th part of the records, so a queue's
// content does not depend on timing. The last batch of a queue may be smaller. A queue ends with its first
// error. Destroying the object ends commands and threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/dataset/line_source.h"
#include "executor/dataset/parser.h"
#include "executor/dataset/records.h"
#include "framework/base/status.h"
#include "framework/runtime/batch_queue.h"

namespace penstock::dataset {

struct Files {
  std::vector<std::string> names;
  std::string command = "cat";
};

struct ReadingOptions {
  std::size_t threads = 1;     // at least 1
  std::size_t batch_size = 1;  // at least 1
  std::size_t capacity = 16;   // batches in a queue
};

class Reading {
 public:
  static std::unique_ptr<Reading> OfFiles(Format format, Files files, ReadingOptions options);
  // `records` must not change while this object lives.
  static std::unique_ptr<Reading> OfRecords(Format format, const Records& records, ReadingOptions options);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const std::vector<std::shared_ptr<BatchQueue>>& queues() const { return queues_; }
  // Ends commands and threads; a waiting Pop returns E-read-not-started. Any thread may call it, at any time.
  void Stop();

 private:
  Reading(Format format, ReadingOptions options);
  void Start(const std::function<Status(std::size_t thread, BatchQueue& queue)>& read);
  Status ReadFiles(const Files& files, std::size_t thread, BatchQueue& queue);
  Status ReadRecords(const Records& records, std::size_t thread, BatchQueue& queue);

  const Parser parser_;
  const ReadingOptions options_;
  PipeCommands commands_;
  std::vector<std::shared_ptr<BatchQueue>> queues_;
  std::mutex joining_;
  std::vector<std::thread> threads_;
};

// Reads all files with `threads` threads, and adds their records to `records` in the order of the files. On
// an error, adds nothing.
Status Load(const Format& format, const Files& files, std::size_t threads, PipeCommands& commands,
            Records& records);

}  // namespace penstock::dataset
