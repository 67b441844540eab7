#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "executor/collective/arena/shared_memory.h"
#include "executor/collective/gloo/gloo.h"
#include "framework/base/strings.h"
#include "tools/bench/collective/all_reducer.h"

namespace penstock::bench {
namespace {

void EndIfWrong(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_collective: %s\n", status.ToString().c_str());
  std::exit(1);
}

class GroupReducer : public AllReducer {
 public:
  explicit GroupReducer(std::unique_ptr<CollectiveGroup> group) : group_(std::move(group)) {}
  void Sum(float* values, std::size_t count) override {
    const Elements data{reinterpret_cast<std::byte*>(values), static_cast<std::int64_t>(count),
                        ElementType::kFp32};
    EndIfWrong(group_->AllReduce(data, Reduction::kSum, {.blocking = true}).Wait());
  }

 private:
  std::unique_ptr<CollectiveGroup> group_;
};

// A key-value store shared by processes: one file per key in a folder.
collective::KeyValues FilesOf(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto set = [folder](const std::string& key, const std::string& value) {
    const std::filesystem::path unfinished = folder / StrCat(key, ".", getpid());
    std::ofstream(unfinished, std::ios::binary) << value;
    std::filesystem::rename(unfinished, folder / key);
    return OkStatus();
  };
  const auto get = [folder](const std::string& key) -> Result<std::string> {
    while (!std::filesystem::exists(folder / key)) poll(nullptr, 0, 2);
    std::ostringstream text;
    text << std::ifstream(folder / key, std::ios::binary).rdbuf();
    return text.str();
  };
  return {.set = set, .get = get};
}

}  // namespace

std::unique_ptr<AllReducer> MakeSharedMemoryReducer(const BenchRank& rank) {
  Result<std::unique_ptr<CollectiveGroup>> group =
      collective::MakeSharedMemoryGroup({.rank = rank.rank, .size = rank.ranks, .meeting_point = rank.job});
  EndIfWrong(group.status());
  return std::make_unique<GroupReducer>(std::move(group).value());
}

std::unique_ptr<AllReducer> MakeTcpReducer(const BenchRank& rank) {
  if (!collective::HasGloo()) return nullptr;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / (rank.job + "-tcp");
  Result<std::unique_ptr<CollectiveGroup>> group = collective::MakeGlooGroup(
      {.rank = rank.rank, .size = rank.ranks, .address = "127.0.0.1", .store = FilesOf(folder)});
  EndIfWrong(group.status());
  EndIfWrong((*group)->Barrier().Wait());  // all ranks have read their values
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return std::make_unique<GroupReducer>(std::move(group).value());
}

}  // namespace penstock::bench
