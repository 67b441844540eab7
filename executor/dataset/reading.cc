#include "executor/dataset/reading.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "framework/base/log.h"

namespace penstock::dataset {
namespace {

// Calls `take` with each record of the file until it returns false.
Status ReadFile(const Parser& parser, const std::string& file, const std::string& command,
                PipeCommands& commands, const std::function<bool(std::string_view)>& take) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<LineSource> lines,
                            LineSource::Open(file, command, commands));
  std::string record;
  bool told = false;
  while (true) {
    std::string_view line;
    PENSTOCK_ASSIGN_OR_RETURN(const bool more, lines->Next(line));
    if (!more) return OkStatus();
    bool rest = false;
    Status parsed = parser.Parse(line, record, rest);
    if (!parsed.ok()) return std::move(parsed).In(StrCat("dataset: ", lines->Place()));
    if (rest && !std::exchange(told, true)) {
      Log(LogSeverity::kWarning,
          StrCat("dataset: ", lines->Place(), " has more than the ", parser.format().slots.size(),
                 " slots that are read; the rest of such lines is left out"));
    }
    if (!take(record)) return OkStatus();
  }
}

}  // namespace

Reading::Reading(Format format, ReadingOptions options) : parser_(std::move(format)), options_(options) {
  for (std::size_t i = 0; i < options.threads; ++i) {
    queues_.push_back(BatchQueue::Make(options.capacity));
    queues_.back()->Open();
  }
}

Reading::~Reading() { Stop(); }

std::unique_ptr<Reading> Reading::OfFiles(Format format, Files files, ReadingOptions options) {
  std::unique_ptr<Reading> reading(new Reading(std::move(format), options));
  reading->Start([reading = reading.get(), files = std::move(files)](std::size_t thread, BatchQueue& queue) {
    return reading->ReadFiles(files, thread, queue);
  });
  return reading;
}

std::unique_ptr<Reading> Reading::OfRecords(Format format, const Records& records, ReadingOptions options) {
  std::unique_ptr<Reading> reading(new Reading(std::move(format), options));
  reading->Start([reading = reading.get(), &records](std::size_t thread, BatchQueue& queue) {
    return reading->ReadRecords(records, thread, queue);
  });
  return reading;
}

void Reading::Start(const std::function<Status(std::size_t thread, BatchQueue& queue)>& read) {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    threads_.emplace_back([read, i, queue = queues_[i]] {
      Status status = read(i, *queue);
      if (status.ok()) {
        queue->End();
      } else {
        queue->Fail(std::move(status));
      }
    });
  }
}

void Reading::Stop() {
  commands_.Stop();
  for (const auto& queue : queues_) queue->Close();
  const std::lock_guard lock(joining_);  // a thread must not be joined twice
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Status Reading::ReadFiles(const Files& files, std::size_t thread, BatchQueue& queue) {
  Records waiting;  // records of the next batch, which may begin in one file and end in another
  bool wanted = true;
  const auto give = [&] {
    wanted = queue.Push(MakeBatch(parser_.format(), waiting.Slice(0, waiting.size())));
    waiting = Records();
  };
  for (std::size_t i = thread; i < files.names.size() && wanted; i += options_.threads) {
    PENSTOCK_RETURN_IF_ERROR(
        ReadFile(parser_, files.names[i], files.command, commands_, [&](std::string_view record) {
          waiting.Add(record);
          if (waiting.size() == options_.batch_size) give();
          return wanted;
        }));
  }
  if (waiting.size() > 0) give();
  return OkStatus();
}

Status Reading::ReadRecords(const Records& records, std::size_t thread, BatchQueue& queue) {
  const std::size_t end = records.size() * (thread + 1) / options_.threads;
  std::size_t begin = records.size() * thread / options_.threads;
  while (begin < end) {
    const std::size_t next = std::min(end, begin + options_.batch_size);
    if (!queue.Push(MakeBatch(parser_.format(), records.Slice(begin, next)))) break;
    begin = next;
  }
  return OkStatus();
}

Status Load(const Format& format, const Files& files, std::size_t threads, PipeCommands& commands,
            Records& records) {
  const Parser parser(format);
  std::vector<Records> of_file(files.names.size());
  std::vector<Status> ended(files.names.size());
  std::atomic<std::size_t> next = 0;
  const auto read = [&] {
    for (std::size_t i = next++; i < files.names.size(); i = next++) {
      ended[i] = ReadFile(parser, files.names[i], files.command, commands, [&](std::string_view record) {
        of_file[i].Add(record);
        return true;
      });
      if (!ended[i].ok()) next = files.names.size();  // no thread begins another file
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads, files.names.size()); ++i) others.emplace_back(read);
  read();
  for (std::thread& other : others) other.join();
  for (Status& status : ended) PENSTOCK_RETURN_IF_ERROR(std::move(status));
  for (Records& each : of_file) records.Append(std::move(each));
  return OkStatus();
}

}  // namespace penstock::dataset
