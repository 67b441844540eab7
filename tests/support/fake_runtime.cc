#include "tests/support/fake_runtime.h"

#include <cstring>

namespace penstock::test {
namespace {

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// The ranks meet here: each call is one round, which the last to arrive works out for all.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks), data_(static_cast<std::size_t>(ranks), nullptr) {}
  int ranks() const { return ranks_; }

  Status Meet(int rank, Tensor* data, const CollectiveOptions& options,
              const std::function<Status(std::vector<Tensor*>&)>& work) {
    std::unique_lock lock(mutex_);
    const int round = round_;
    data_[static_cast<std::size_t>(rank)] = data;
    if (++arrived_ == ranks_) {
      result_ = work(data_);
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
      return result_;
    }
    if (!all_here_.wait_for(lock, options.timeout, [&] { return round_ != round; })) {
      return DeadlineExceeded("E-collective-timeout", arrived_, " of ", ranks_, " ranks arrived");
    }
    return result_;
  }

 private:
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<Tensor*> data_;
  int arrived_ = 0;
  int round_ = 0;
  Status result_;
};

Status SameShapes(const std::vector<Tensor*>& data) {
  for (const Tensor* tensor : data) {
    if (tensor->dtype() == data[0]->dtype() && tensor->count() == data[0]->count()) continue;
    return InvalidArgument("E-collective-shape", "ranks disagree: ", DTypeName(data[0]->dtype()),
                           data[0]->shape(), " and ", DTypeName(tensor->dtype()), tensor->shape());
  }
  return OkStatus();
}

template <typename T>
void SumInto(std::vector<Tensor*>& data) {
  for (std::int64_t i = 0; i < data[0]->count(); ++i) {
    T sum{};
    for (Tensor* tensor : data) sum += tensor->Data<T>()[i];
    for (Tensor* tensor : data) tensor->Data<T>()[i] = sum;
  }
}

Status Sum(std::vector<Tensor*>& data) {
  PENSTOCK_RETURN_IF_ERROR(SameShapes(data));
  switch (data[0]->dtype()) {
    case DType::kFp32:
      SumInto<float>(data);
      return OkStatus();
    case DType::kFp64:
      SumInto<double>(data);
      return OkStatus();
    default:
      return InvalidArgument("E-collective-type", DTypeName(data[0]->dtype()), " cannot be summed");
  }
}

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return meeting_->ranks(); }

  Status AllReduceSum(Tensor& data, const CollectiveOptions& options) override {
    return meeting_->Meet(rank_, &data, options, Sum);
  }
  Status Broadcast(Tensor& data, int root, const CollectiveOptions& options) override {
    return meeting_->Meet(rank_, &data, options, [root](std::vector<Tensor*>& all) -> Status {
      PENSTOCK_RETURN_IF_ERROR(SameShapes(all));
      for (Tensor* tensor : all) {
        if (tensor != all[static_cast<std::size_t>(root)])
          tensor->CopyFrom(*all[static_cast<std::size_t>(root)]);
      }
      return OkStatus();
    });
  }
  // A broadcast of each rank's data in turn.
  Status AllGather(const Tensor& data, std::span<Tensor> out, const CollectiveOptions& options) override {
    for (int r = 0; r < ranks(); ++r) {
      Tensor& to = out[static_cast<std::size_t>(r)];
      to.Reset(data.dtype(), data.shape());
      if (r == rank_) to.CopyFrom(data);
      PENSTOCK_RETURN_IF_ERROR(Broadcast(to, r, options));
    }
    return OkStatus();
  }
  Status Barrier(const CollectiveOptions& options) override {
    return meeting_->Meet(rank_, nullptr, options, [](std::vector<Tensor*>&) { return OkStatus(); });
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

bool ManualCompletion::Done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

Status ManualCompletion::Wait() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return done_; });
  return status_;
}

void ManualCompletion::Finish(Status status) {
  const std::lock_guard lock(mutex_);
  done_ = true;
  status_ = std::move(status);
  finished_.notify_all();
}

class FakeDisk::File : public DiskFile {
 public:
  File(FakeDisk& disk, std::shared_ptr<Content> content) : disk_(disk), content_(std::move(content)) {}
  Status Append(std::string_view bytes) override {
    const std::lock_guard lock(disk_.mutex_);
    content_->written += bytes;
    return OkStatus();
  }
  Status Sync() override {
    const std::lock_guard lock(disk_.mutex_);
    content_->synced = content_->written;
    return OkStatus();
  }

 private:
  FakeDisk& disk_;
  std::shared_ptr<Content> content_;
};

Result<std::unique_ptr<DiskFile>> FakeDisk::Create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto content = std::make_shared<Content>();
  now_[path] = content;
  return std::unique_ptr<DiskFile>(new File(*this, std::move(content)));
}

Result<std::string> FakeDisk::Read(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto it = now_.find(path);
  if (it == now_.end()) return InvalidArgument("E-disk-missing", path, " does not exist");
  return it->second->written;
}

Status FakeDisk::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const auto it = now_.find(from);
  if (it == now_.end()) return InvalidArgument("E-disk-missing", from, " does not exist");
  now_[to] = it->second;
  now_.erase(from);
  return OkStatus();
}

Status FakeDisk::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (now_.erase(path) == 0) return InvalidArgument("E-disk-missing", path, " does not exist");
  return OkStatus();
}

Status FakeDisk::SyncFolder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(durable_, [&](const auto& entry) { return FolderOf(entry.first) == path; });
  for (const auto& [name, content] : now_) {
    if (FolderOf(name) == path) durable_[name] = content;
  }
  return OkStatus();
}

Result<std::vector<std::string>> FakeDisk::List(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, content] : now_) {
    if (FolderOf(path) == folder) names.push_back(folder.empty() ? path : path.substr(folder.size() + 1));
  }
  return names;
}

void FakeDisk::Crash() {
  const std::lock_guard lock(mutex_);
  now_.clear();
  for (const auto& [path, content] : durable_) {
    now_[path] = std::make_shared<Content>(Content{content->synced, content->synced});
  }
  durable_ = now_;
}

std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(int ranks) {
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(std::make_unique<LocalCommunicator>(meeting, r));
  return all;
}

}  // namespace penstock::test
